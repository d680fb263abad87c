#pragma once

#include <functional>
#include <string>
#include <thread>

namespace trireme::transport {

/// A named thread of the library, joined by the destructor.
///
/// Threads know that they are the library's: an error that only they have seen has not reached
/// anybody who could act on it (`Failure`).
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

}  // namespace trireme::transport
