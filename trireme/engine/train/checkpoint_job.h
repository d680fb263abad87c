#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "trireme/engine/checkpoint/checkpoint_writer.h"

namespace trireme::train {

/// One rank's part of one checkpoint, by a thread of its own at low priority: it writes its share, and leaves word of
/// that in the checkpoint's folder; rank 0 waits there for the word of all, and publishes.
///
/// Threads   the methods from one thread.
class CheckpointJob {
 public:
  using Publish = std::function<void(checkpoint::Contents all)>;

  /// partial    the folder, on a file system that all ranks share.
  /// publish    on rank 0, by the thread; else empty.
  CheckpointJob(std::int64_t step, std::filesystem::path partial, checkpoint::ShareFile share,
                int rank, int num_ranks, Publish publish);

  /// Gives up what is not written or published yet; of a checkpoint that is not, rank 0 removes the folder.
  ~CheckpointJob();
  CheckpointJob(const CheckpointJob&) = delete;
  CheckpointJob& operator=(const CheckpointJob&) = delete;

  std::int64_t step() const { return step_; }

  /// Blocks until this rank's share is written; throws what hindered it.
  void wait_written();

  /// On rank 0: blocks until it is published; throws what hindered that.
  void wait_published();

  /// On rank 0: whether it is, or throws what hindered that; does not block.
  bool is_published();

 private:
  enum class Progress : std::uint8_t { kWriting, kWritten, kPublished, kFailed };

  void run(const std::stop_token& stop, checkpoint::ShareFile share, const Publish& publish);
  void reach(Progress progress, std::exception_ptr failure = nullptr);
  void wait(Progress progress);
  void write_share(checkpoint::ShareFile share) const;
  checkpoint::Contents words_of_all(const std::stop_token& stop) const;
  std::filesystem::path word_of(int rank) const;

  std::int64_t step_;
  std::filesystem::path partial_;
  int rank_, num_ranks_;
  bool publishes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Progress progress_ = Progress::kWriting;
  std::exception_ptr failure_;
  std::jthread thread_;  ///< Last: it uses the others.
};

}  // namespace trireme::train
