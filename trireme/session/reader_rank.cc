#include "trireme/session/reader_rank.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/engine/readers/remote_source.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/reader_threads.h"
#include "trireme/error.h"

namespace trireme::session {
namespace {

enum SourceNumber : std::int64_t { kTrainingSource, kEvaluationSource };

}  // namespace

bool reads_for_others(const SessionOptions& options, const collectives::World& world) {
  const int num_readers = options.reader_ranks;
  collectives::require_same(world, fmt::format("reader_ranks {}", num_readers), "training options");
  if (num_readers == 0) return false;
  if (options.serial) {
    throw Error(ErrorKind::kInvalidArgument,
                "--serial is one process, and --reader-ranks are others; leave one out");
  }
  if (num_readers < 0 || num_readers >= world.size()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("reader_ranks is {} in a world of {}; give it 0 to {}, the others train",
                    num_readers, world.size(), world.size() - 1));
  }
  return world.rank() >= world.size() - num_readers;
}

ReaderRank::ReaderRank(const collectives::World& all, const MakeWorkload& make,
                       const SessionOptions& options) {
  memory::apply_torch_settings();  // sources may compute with torch
  if (options.handles_signals) signals_.emplace();
  // As those that train make it, so that data which are drawn are the same; the model is not needed.
  const Workload workload = train::construct(make, options.training.seed, true);
  server_.emplace(std::vector{workload.training, workload.evaluation}, all.endpoint,
                  options.reader_ranks,
                  train::threads_at_once(options.training.reader_threads,
                                         train::cores_of_rank(train::num_local_ranks(all))),
                  program::error_of);
}

TrainingRanks::TrainingRanks(const collectives::World& all, int num_readers)
    : first_(num_readers == 0
                 ? nullptr
                 : std::make_unique<transport::FirstRanks>(all.endpoint, all.size() - num_readers)),
      world_{first_ ? *first_ : all.endpoint, all.watch, all.costs} {
  if (first_) link_ = std::make_shared<readers::ReaderLink>(all.endpoint, num_readers, all.watch);
}

TrainingRanks::~TrainingRanks() { end(); }

MakeWorkload TrainingRanks::with_readers(const MakeWorkload& make) const {
  if (!link_) return make;
  return [make, link = link_] {
    Workload workload = make();
    const auto remote = [&](std::shared_ptr<const data::Source>& source, SourceNumber number) {
      if (source) source = std::make_shared<readers::RemoteSource>(source, number, link);
    };
    remote(workload.training, kTrainingSource);
    remote(workload.evaluation, kEvaluationSource);
    return workload;
  };
}

}  // namespace trireme::session
