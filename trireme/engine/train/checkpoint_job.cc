#include "trireme/engine/train/checkpoint_job.h"

#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/error.h"

namespace trireme::train {
namespace {

/// Steps go first where there is no processor to spare.
void lower_priority() {
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
}

}  // namespace

CheckpointJob::CheckpointJob(std::int64_t step, std::filesystem::path partial,
                             checkpoint::ShareFile share, int rank, int num_ranks, Publish publish)
    : step_(step),
      partial_(std::move(partial)),
      rank_(rank),
      num_ranks_(num_ranks),
      publishes_(publish != nullptr) {
  thread_ = std::jthread([this, publish = std::move(publish),
                          share = std::move(share)](const std::stop_token& stop) mutable {
    run(stop, std::move(share), publish);
  });
}

CheckpointJob::~CheckpointJob() {
  thread_.request_stop();
  thread_.join();
  std::error_code ignored;  // the next checkpoint tries again
  if (publishes_ && progress_ != Progress::kPublished) {
    std::filesystem::remove_all(partial_, ignored);
  }
}

std::filesystem::path CheckpointJob::word_of(int rank) const {
  return partial_ / ("rank-" + std::to_string(rank) + ".json");
}

void CheckpointJob::run(const std::stop_token& stop, checkpoint::ShareFile share,
                        const Publish& publish) {
  lower_priority();
  try {
    write_share(std::move(share));
    reach(Progress::kWritten);
    if (!publish) return;
    checkpoint::Contents all = words_of_all(stop);
    if (stop.stop_requested()) return;
    publish(std::move(all));
    reach(Progress::kPublished);
  } catch (const std::exception&) {
    reach(Progress::kFailed, std::current_exception());
  }
}

/// A file that fills the disk leaves it.
void CheckpointJob::write_share(checkpoint::ShareFile share) const {
  try {
    const checkpoint::Contents mine = share.write(partial_);
    write_file_atomically(word_of(rank_), compact_text(to_json(mine)));
  } catch (const std::exception&) {
    std::error_code ignored;
    std::filesystem::remove(partial_ / share.name(), ignored);
    throw;
  }
}

/// Word comes by the folder, so that no rank waits for another between two steps.
checkpoint::Contents CheckpointJob::words_of_all(const std::stop_token& stop) const {
  constexpr std::chrono::milliseconds kBetweenLooks{5};
  checkpoint::Contents all;
  for (int rank = 0; rank < num_ranks_; ++rank) {
    const std::filesystem::path word = word_of(rank);
    while (!is_there(word)) {
      if (stop.stop_requested()) return all;
      std::this_thread::sleep_for(kBetweenLooks);
    }
    const std::string origin = "what rank " + std::to_string(rank) + " wrote";
    const Json json = parse_json(read_file(word), origin);
    all.merge(checkpoint::contents_from_json(JsonField(json, origin)));
    std::filesystem::remove(word);
  }
  return all;
}

void CheckpointJob::reach(Progress progress, std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
    failure_ = std::move(failure);
  }
  changed_.notify_all();
}

void CheckpointJob::wait(Progress progress) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return progress_ >= progress; });
  if (failure_) std::rethrow_exception(failure_);
}

void CheckpointJob::wait_written() { wait(Progress::kWritten); }

void CheckpointJob::wait_published() { wait(Progress::kPublished); }

bool CheckpointJob::is_published() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  return progress_ == Progress::kPublished;
}

}  // namespace trireme::train
