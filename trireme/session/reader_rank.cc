#include "trireme/session/reader_rank.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "trireme/engine/readers/remote_source.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/error.h"

namespace trireme::session {
namespace {

enum SourceNumber : std::int64_t { kTrainingSource, kEvaluationSource };

/// What tells data apart; empty where there are none.
std::string text_of(const data::Source* source) {
  if (source == nullptr) return "none";
  std::string fields;
  for (const data::Field& field : source->fields())
    fields += fmt::format(" {} {}", field.name, field.num_bytes());
  return fmt::format("{} samples of{} {}", source->num_samples(), fields, source->identity());
}

void compare_data(const collectives::World& all, const Workload& workload) {
  collectives::require_same(
      all,
      fmt::format("training {}\nevaluation {}\n", text_of(workload.training.get()),
                  text_of(workload.evaluation.get())),
      "data");
}

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
  if (options.handles_signals) signals_.emplace();
  // As those that train make it, so that data which are drawn are the same; the model is not needed.
  const Workload workload = train::construct(make, options.training.seed, true);
  // First: those that train need samples before they compare.
  server_.emplace(std::vector{workload.training, workload.evaluation}, all.endpoint,
                  options.reader_ranks, options.training.reader_threads);
  compare_data(all, workload);
}

TrainingRanks::TrainingRanks(const collectives::World& all, int num_readers)
    : all_(all),
      first_(num_readers == 0
                 ? nullptr
                 : std::make_unique<transport::FirstRanks>(all.endpoint, all.size() - num_readers)),
      world_{first_ ? *first_ : all.endpoint, all.watch, all.costs} {
  if (first_) link_ = std::make_shared<readers::ReaderLink>(all.endpoint, num_readers, all.watch);
}

TrainingRanks::~TrainingRanks() {
  if (link_) link_->end();
}

void TrainingRanks::require_same_data(const Workload& workload) const {
  if (link_) compare_data(all_, workload);
}

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
