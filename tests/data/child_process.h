#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>

#include "trireme/error.h"

namespace trireme::data {

/// A filter of this process's system calls, for good: `number` fails with `code`.
inline void forbid(int number, int code) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(code)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{.len = 4, .filter = program};
  EXPECT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  EXPECT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

/// What `act` returns in a process of its own, which is killed where it takes too long.
inline std::string in_child(const std::function<std::string()>& act) {
  int ends[2] = {};
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    std::string text;
    try {
      text = act();
    } catch (const Error& error) {
      text = std::string("error ") + error.what();
    }
    const ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(written < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0; size += static_cast<std::size_t>(std::max<ssize_t>(got, 0))) {
    got = ::read(ends[0], text.data() + size, text.size() - size);
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  text.resize(size);
  return text;
}

}  // namespace trireme::data
