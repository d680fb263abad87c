#include "trireme/base/inheritance.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace trireme {
namespace {

/// What a number stood for when it was given here; inode 0: nothing.
struct Kept {
  std::atomic<std::uint64_t> device{0};
  std::atomic<std::uint64_t> inode{0};
};

constexpr std::size_t kMostDescriptors = 1 << 16;

// A fact of the process, as its descriptors are. Atomic, as a child must take no lock that another
// thread of its parent may have held.
std::array<Kept, kMostDescriptors> kept;
std::atomic<std::size_t> num_looked_at{0};  ///< Above the highest number given.

/// A number that has been closed since may stand for something else.
bool is_kept(std::size_t number) {
  const std::uint64_t inode = kept[number].inode.load();
  struct stat now{};
  return inode != 0 && ::fstat(static_cast<int>(number), &now) == 0 && now.st_ino == inode &&
         now.st_dev == kept[number].device.load();
}

/// In the child, where little may be called. The numbers stay taken: a late close in the child must
/// not end a file of another use.
void give_up_in_child() {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (std::size_t i = 0; i < num_looked_at.load(); ++i) {
    if (!is_kept(i)) continue;
    const auto number = static_cast<int>(i);
    if (nothing < 0 || ::dup3(nothing, number, O_CLOEXEC) < 0) ::close(number);
  }
  if (nothing >= 0) ::close(nothing);
}

}  // namespace

void keep_from_children(const Descriptor& descriptor) {
  [[maybe_unused]] static const int is_registered =
      ::pthread_atfork(nullptr, nullptr, give_up_in_child);
  struct stat facts{};
  const auto number = static_cast<std::size_t>(descriptor.number());
  if (!descriptor.is_open() || number >= kMostDescriptors) return;
  if (::fstat(descriptor.number(), &facts) != 0) return;
  kept[number].device = facts.st_dev;
  kept[number].inode = facts.st_ino;
  std::size_t before = num_looked_at.load();
  while (before <= number && !num_looked_at.compare_exchange_weak(before, number + 1)) {
  }
}

}  // namespace trireme
