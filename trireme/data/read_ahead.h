#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "trireme/base/descriptor.h"
#include "trireme/data/aligned_buffers.h"
#include "trireme/data/own_process.h"
#include "trireme/data/read_ring.h"

namespace trireme::data {

/// How much is read ahead.
struct ReadAheadLimits {
  int num_in_flight = 64;      ///< Requests at a time.
  std::int64_t max_bytes = 0;  ///< In memory: read or being read, and not taken yet.
  std::size_t alignment = 1;   ///< Of places, lengths and memory, a power of two.
  int most_idle_ms = 10'000;   ///< That the queue begins nothing: then it has failed.
};

/// Where a record lies.
struct RecordExtent {
  std::int64_t record = 0;  ///< Which tells it from all others.
  int file = 0;
  std::int64_t begin = 0, end = 0;
};

/// Records that are read before they are asked for, by requests that hold several where these are neighbours. There is no thread:
/// requests are begun by the calls, mostly those of the thread that wants.
///
/// What cannot be read ahead, for whatever reason, is said to be not there: who needs it reads it, and gets the error. So is all
/// once the queue has failed, which is not asked again then, and all in a child by fork, which the queue does not know.
///
/// Calls of `want` follow each other as what they name is taken. Where records that are asked for wait for memory which older
/// calls' records have, those are forgotten.
///
/// Threads  safe. Of several that wait one asks the queue, for all.
class ReadAhead {
 public:
  /// A record's bytes, as long as this lives, and ReadAhead does; empty: it is not there.
  struct Bytes {
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  using Open = std::function<std::shared_ptr<const Descriptor>(int file)>;

  /// queue   made for `num_in_flight` requests.
  /// open    a file, for reads as aligned as said. Called under a lock.
  ReadAhead(const ReadAheadLimits& limits, std::unique_ptr<ReadQueue> queue, Open open);

  /// Waits for what is being read.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Records that are taken soon, in any order among themselves. Those that are wanted already are so once.
  void want(std::vector<RecordExtent> records);

  /// A record that is wanted, which it is no longer then; blocks until it is there.
  Bytes take(std::int64_t record);

  /// Why nothing is read ahead any more, for people; empty: it is.
  std::string failure() const;

  /// In memory, as `max_bytes` counts them.
  std::int64_t num_bytes() const;

 private:
  struct Piece;
  using PiecePtr = std::shared_ptr<Piece>;
  struct Claim {
    PiecePtr piece;
    std::int64_t begin = 0, end = 0;  ///< In the file.
  };

  void add_piece(const RecordExtent& record, PiecePtr& last);
  void start(const PiecePtr& first);
  void begin(const PiecePtr& piece);
  void add_request(const PiecePtr& piece);
  bool has_room(const Piece& piece) const;
  std::size_t length_of(const Piece& piece) const;
  void wait_for(const PiecePtr& piece, std::unique_lock<std::mutex>& lock);
  void wait_for_any(std::unique_lock<std::mutex>& lock);
  void settle(const ReadQueue::Completion& completion);
  void end(Piece& piece, bool is_read);
  void give_up(const std::string& why);
  void abandon_begun();
  void leave(Piece& piece);
  void forget_before(std::int64_t call);

  ReadAheadLimits limits_;
  Open open_;
  AlignedBuffers buffers_;  ///< Before the queue: it may write into them to its end.
  std::unique_ptr<ReadQueue> queue_;

  OwnProcess process_;

  mutable std::mutex mutex_;  ///< Of all below.
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::string failure_;                             ///< Of the queue, once it is not used any more.
  std::unordered_map<std::int64_t, Claim> claims_;  ///< By record: wanted, not taken.
  std::deque<PiecePtr> queued_;
  std::vector<PiecePtr> reading_;  ///< By the request's id; null: it is free.
  std::vector<std::uint64_t> free_ids_;
  std::int64_t num_bytes_ = 0;
  std::int64_t call_ = 0;            ///< Counts `want`.
  std::int64_t forgotten_call_ = 0;  ///< Calls before it are forgotten.
  std::thread::id wanting_;          ///< Which called `want` last.
  std::vector<PiecePtr> added_;      ///< To the queue, in order; not submitted.
  int num_begun_ = 0;                ///< Submitted, not ended.
  int num_idle_ = 0;                 ///< Times in a row that nothing could be begun.
  bool is_waited_ = false;           ///< A thread asks the queue.
};

}  // namespace trireme::data
