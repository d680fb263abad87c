#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace trireme::test {

/// Whether a test may run out of descriptors: the address sanitizer's preset also checks types of
/// objects, which opens pipes.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kMayWantDescriptors = false;
#else
inline constexpr bool kMayWantDescriptors = true;
#endif

/// While it lives, this process may open `num_more` descriptors and no other.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t num_more) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = ::dup(0);
    ::close(next);
    set({.rlim_cur = static_cast<rlim_t>(next) + num_more, .rlim_max = before_.rlim_max});
  }
  ~FewDescriptors() { set(before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  static void set(const rlimit& limit) { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0); }

  rlimit before_{};
};

}  // namespace trireme::test
