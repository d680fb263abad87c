#pragma once

#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace trireme::transport {

/// A named thread of the library, joined by the destructor.
///
/// Threads know that they are the library's: an error that only they have seen has not reached
/// anybody who could act on it (`Failure`). They may run wherever their maker could before
/// `bind_to_cores`; `take_cores` leaves them less. They run before threads that compute: they ask for
/// short slices.
class LibraryThread {
 public:
  /// name   at most 15 characters are shown. body: must not throw, and must end once its owner has
  ///        asked it to, before the destructor.
  LibraryThread(const std::string& name, std::function<void()> body);
  ~LibraryThread() { join(); }
  LibraryThread(const LibraryThread&) = delete;
  LibraryThread& operator=(const LibraryThread&) = delete;

  void join();

  /// Whether the calling thread is a LibraryThread.
  static bool is_current();

 private:
  std::thread thread_;
};

/// Binds the calling thread, and those that others than LibraryThread make from it, to some cores. Does
/// nothing where the system refuses: only speed depends on it.
void bind_to_cores(std::span<const int> cores);

/// Gives this thread cores of its own among those of the process, `each`, if there are as many for each
/// local rank. Two busy ranks that meet on one core while another idles wait for milliseconds, and so
/// does a message whose thread waits behind another rank: LibraryThreads that are made from now on
/// run on these cores and on those that no rank has. Cores that another launch on this host has taken
/// in this way are left to it; where too few are left, nothing is bound.
void take_cores(int rank, int num_ranks, int each = 1);

/// Gives back the cores that this thread has taken, and takes `each` for the same rank: those that it has now,
/// which other threads that compute for it are to be bound to. Nothing, and none, where it never took any.
std::vector<int> retake_cores(int each);

/// Cores on which the calling thread may run, or might before `bind_to_cores`, in order: those of the process.
std::vector<int> allowed_cores();
int count_cores();

}  // namespace trireme::transport
