#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/engine/readers/sample_messages.h"
#include "trireme/error.h"
#include "trireme/kernels/spread.h"
#include "trireme/wire/system/thread.h"

namespace trireme::readers {

/// Reads samples for the ranks that train: a thread for each of them, from the start on until that rank asks no more.
///
/// What cannot be read goes back to whoever asked, as an error, and ends nothing here. What ends a thread ends the world.
///
/// Threads  the methods from one thread; sources are read by several.
class SampleServer {
 public:
  using ErrorOf = std::function<Error(const std::exception&)>;

  /// sources       by the number that requests have; null ones are never asked for.
  /// endpoint      of all ranks; outlives this. This rank is one of the last.
  /// num_readers   those that read: the last ranks of the world.
  /// num_threads   that read the samples of one request.
  /// error_of      what a source has thrown, as an Error.
  /// Errors        those of Source::identity.
  SampleServer(std::vector<std::shared_ptr<const data::Source>> sources,
               transport::Endpoint& endpoint, int num_readers, int num_threads, ErrorOf error_of);

  /// As `wait`, without its errors.
  ~SampleServer();
  SampleServer(const SampleServer&) = delete;
  SampleServer& operator=(const SampleServer&) = delete;

  /// Blocks until no rank asks any more, or the world has failed, and throws why. However long: a training asks when it
  /// wants something.
  void wait();

 private:
  class Client;

  void serve(int rank) noexcept;
  std::vector<std::byte> answer(const std::vector<std::int64_t>& request) const;
  const data::Source& source(std::int64_t number) const;
  void compare(const std::vector<std::int64_t>& request) const;
  std::vector<std::byte> read(const std::vector<std::int64_t>& request) const;

  std::vector<std::shared_ptr<const data::Source>> sources_;
  std::vector<std::string> texts_;  ///< What `text_of` says of them.
  transport::Endpoint& endpoint_;
  SampleTags tags_;
  kernels::Spread spread_;
  ErrorOf error_of_;
  std::mutex mutex_;
  std::exception_ptr failure_;  ///< The first that ended a thread.
  std::vector<std::unique_ptr<transport::LibraryThread>> threads_;  ///< Last: they use the others.
};

}  // namespace trireme::readers
