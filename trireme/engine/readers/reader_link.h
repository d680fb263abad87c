#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/engine/readers/sample_messages.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::readers {

/// Samples that were asked for, and what came. Memory is lent until both works have ended.
struct SampleAnswer {
  int reader = 0;
  std::vector<std::int64_t> words;
  std::unique_ptr<std::byte[]> memory;
  std::size_t num_bytes = 0;
  transport::WorkPtr sent, came;
  mutable std::atomic<bool> is_counted = false;  ///< What reading them took.

  std::span<const std::byte> bytes() const { return {memory.get(), num_bytes}; }
  std::size_t num_samples() const { return words.size() / 2; }
};

/// From a rank that trains to those that read for it, the last ones of the world.
///
/// Threads  safe from any thread.
class ReaderLink {
 public:
  /// endpoint   of all ranks; outlives the link.
  ReaderLink(transport::Endpoint& endpoint, int num_readers, const transport::WatchOptions& watch);
  ~ReaderLink() { end(); }
  ReaderLink(const ReaderLink&) = delete;
  ReaderLink& operator=(const ReaderLink&) = delete;

  /// Which rank reads a sample: neighbours go together, and the same ones to the same reader, for what it keeps of them.
  int reader_of(std::int64_t index) const;

  /// Begins to ask `reader` for samples; does not wait. kInvalidArgument after `end`.
  std::shared_ptr<const SampleAnswer> ask(int reader, std::int64_t source,
                                          std::span<const data::Sample> samples);

  /// Compares what `text_of` says of a source here and at all readers. kInvalidArgument where they differ; errors of `await`.
  void compare(std::int64_t source, const std::string& text);

  /// Waits until it is there: what follows kWhole, as long as `answer` lives.
  ///
  /// Errors   the reader's, which names it; those of a world that fails; kTimeout.
  std::span<const std::byte> await(const SampleAnswer& answer) const;

  /// Tells the readers that this rank asks no more, and waits until all that was asked for is there. Of a world that has
  /// failed: at once. Twice is once.
  void end() noexcept;

  int num_readers() const { return num_readers_; }
  int first_reader() const { return endpoint_.world_size() - num_readers_; }
  bool has_failed() const { return endpoint_.failure().has_value(); }

 private:
  std::shared_ptr<const SampleAnswer> begin(int reader, std::vector<std::int64_t> words);
  void require_live() const;
  void wait(const SampleAnswer& answer) const;

  transport::Endpoint& endpoint_;
  int num_readers_;
  transport::WatchOptions watch_;
  SampleTags tags_;
  std::mutex
      mutex_;  ///< Of all below; requests and answers of a reader are begun in the same order.
  bool has_ended_ = false;
  std::list<std::shared_ptr<const SampleAnswer>>
      under_way_;  ///< Whoever asked may have given them up.
};

}  // namespace trireme::readers
