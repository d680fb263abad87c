#pragma once

#include <chrono>

namespace trireme::memory {

/// Most threads that a process may compute with.
inline constexpr int kMostThreads = 1024;

/// Time that the calling thread has computed so far: its processor time. Where torch computes with several threads,
/// the time of day, since the clock of one thread does not count the work of the others. For differences.
std::chrono::duration<double> compute_time();

}  // namespace trireme::memory
