#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trireme/data/own_process.h"

struct io_uring;  // NOLINT(readability-identifier-naming): liburing's name

namespace trireme::data {

/// Reads of files, many at a time, whose ends come in any order.
///
/// Threads  one may wait while another adds and submits; each of both by one thread at a time.
class ReadQueue {
 public:
  struct Request {
    std::uint64_t id = 0;
    int descriptor = -1;
    std::int64_t begin = 0;   ///< In the file.
    std::span<std::byte> to;  ///< The system's until the read has ended.
  };
  struct Completion {
    std::uint64_t id = 0;
    int result = 0;  ///< Bytes, 0 at the file's end; below 0 the error's number.
  };

  virtual ~ReadQueue() = default;

  /// For `submit`. No more than the queue was made for, less those that have not ended.
  virtual void add(const Request& request) = 0;

  /// Begins what was added. Returns how many were begun: fewer where the system is short of memory, which may pass. kIo.
  virtual int submit() = 0;

  /// Reads that have ended, at least one of those begun: blocks until there is one. kIo.
  virtual std::vector<Completion> wait() = 0;
};

/// By the kernel's io_uring, which needs no thread. Children by fork do not have it: there it may only be destroyed.
class ReadRing : public ReadQueue {
 public:
  /// num_requests   at a time.
  /// Errors   kUnavailable, with the system's reason, where io_uring cannot be had: an old kernel, a filter of system calls (as
  ///          of Docker), `kernel.io_uring_disabled`.
  explicit ReadRing(int num_requests);

  /// What was begun has ended, or its memory stays.
  ~ReadRing() override;
  ReadRing(const ReadRing&) = delete;
  ReadRing& operator=(const ReadRing&) = delete;

  void add(const Request& request) override;
  int submit() override;
  std::vector<Completion> wait() override;

 private:
  std::unique_ptr<io_uring> ring_;
  OwnProcess process_;
};

}  // namespace trireme::data
