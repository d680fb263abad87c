#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace trireme::transport {

/// A named thread of the library, joined by the destructor.
///
/// Threads know that they are the library's: an error that only they have seen has not reached
/// anybody who could act on it (`Failure`). They may run wherever their maker could before
/// `bind_to_core`; `take_core` leaves them less. They run before threads that compute: they ask for
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

/// Binds the calling thread, and those that others than LibraryThread make from it, to a core. Does
/// nothing where the system refuses: only speed depends on it.
void bind_to_core(int core);

/// Gives this thread a core of its own among those of the process, if there is one for each local
/// rank. Two busy ranks that meet on one core while another idles wait for milliseconds, and so
/// does a message whose thread waits behind another rank: LibraryThreads that are made from now on
/// run on this core and on those that no rank has. Cores that another launch on this host has taken
/// in this way are left to it; where none is left, nothing is bound.
void take_core(int rank, int num_ranks);

/// Those cores, in order.
std::vector<int> allowed_cores();

/// Cores on which the calling thread may run, or might before `bind_to_core`: those of the process.
int count_cores();

}  // namespace trireme::transport
