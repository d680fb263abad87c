#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace trireme::benchmarks {

/// Keeps a second benchmark off this machine, and says what else runs: load averages of 1, 5 and 15
/// minutes, before the benchmark adds its own.
class Machine {
 public:
  Machine() : file_(open("/tmp/trireme_benchmark.lock", O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
    if (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) != 0) {
      std::fprintf(stderr, "waiting for another benchmark\n");
      flock(file_, LOCK_EX);
    }
    double load[3] = {0, 0, 0};
    if (getloadavg(load, 3) != 3) load[0] = load[1] = load[2] = -1;
    char text[64];
    std::snprintf(text, sizeof text, "%.2f %.2f %.2f", load[0], load[1], load[2]);
    load_ = text;
  }
  ~Machine() {
    if (file_ >= 0) close(file_);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const std::string& load() const { return load_; }

 private:
  int file_;
  std::string load_;
};

}  // namespace trireme::benchmarks
