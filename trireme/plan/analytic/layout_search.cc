#include "trireme/plan/analytic/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "trireme/error.h"

namespace trireme::analytic {
namespace {

constexpr std::int64_t kMostStages = 64;
constexpr std::int64_t kMostMicrobatch = 64;
constexpr std::int64_t kMostParts = 8;
constexpr std::int64_t kMostContext = 4;

class Searcher {
 public:
  Searcher(const ModelShape& shape, const Machine& machine, const AchievedParts& achieved,
           const LayoutSearch& search)
      : shape_(shape),
        machine_(machine),
        achieved_(achieved),
        search_(search),
        num_devices_(search.num_hosts * machine.devices_per_host) {}

  LayoutsFound run() {
    const std::int64_t most_tensor = shape_.is_transformer() ? machine_.devices_per_host : 1;
    for (std::int64_t tensor = 1; tensor <= most_tensor; ++tensor) {
      if (machine_.devices_per_host % tensor != 0) continue;
      if (tensor > 1 && shape_.heads % tensor != 0) continue;
      for (std::int64_t pipeline = 1; pipeline <= kMostStages; ++pipeline) {
        for (std::int64_t context = 1; context <= most_context(); context *= 2) {
          try_pipeline(tensor, pipeline, context);
        }
      }
    }
    refuse_nothing();
    std::ranges::stable_sort(found_.best, [](const FoundLayout& a, const FoundLayout& b) {
      return std::pair(a.step.step_s, a.step.memory.total()) <
             std::pair(b.step.step_s, b.step.memory.total());
    });
    for (const FoundLayout& one : found_.best) {
      const bool is_on_front =
          found_.front.empty() || one.step.memory.total() < found_.front.back().step.memory.total();
      if (is_on_front) found_.front.push_back(one);
    }
    if (found_.best.size() > search_.most) found_.best.resize(search_.most);
    return std::move(found_);
  }

 private:
  /// Samples of a microbatch that are tried.
  std::vector<std::int64_t> microbatches_of(std::int64_t replica_batch) const {
    std::vector<std::int64_t> sizes;
    if (search_.microbatch > 0) {
      if (replica_batch % search_.microbatch == 0) sizes.push_back(search_.microbatch);
      return sizes;
    }
    for (std::int64_t size = 1; size <= kMostMicrobatch && replica_batch % size == 0; size *= 2) {
      sizes.push_back(size);
    }
    if (sizes.back() != replica_batch) sizes.push_back(replica_batch);
    return sizes;
  }

  std::int64_t seq_len() const { return search_.seq_len > 0 ? search_.seq_len : shape_.seq_len; }

  /// Ranks that share the tokens of a sample.
  std::int64_t most_context() const {
    std::int64_t most = 1;
    while (shape_.is_transformer() && most < kMostContext && seq_len() % (2 * most) == 0) most *= 2;
    return most;
  }

  void try_pipeline(std::int64_t tensor, std::int64_t pipeline, std::int64_t context) {
    const std::int64_t model_ranks = tensor * pipeline * context;
    if (num_devices_ % model_ranks != 0 || pipeline > shape_.num_blocks()) return;
    const std::int64_t data = num_devices_ / model_ranks;
    if (search_.global_batch % data != 0) return;
    if (search_.replicas > 0 && data != search_.replicas) return;
    const std::int64_t replica_batch = search_.global_batch / data;
    for (const std::int64_t microbatch : microbatches_of(replica_batch)) {
      if (context > 1 && microbatch > 1) break;  // Whole samples are shared out first.
      const std::int64_t m = replica_batch / microbatch;
      for (std::int64_t parts = 1; parts <= kMostParts; ++parts) {
        if (parts > 1 && (pipeline == 1 || m % pipeline != 0)) break;
        if (pipeline * parts > shape_.num_blocks()) break;
        TrainLayout layout;
        layout.tensor = tensor;
        layout.pipeline = pipeline;
        layout.context = context;
        layout.data = data;
        layout.microbatch = microbatch;
        layout.virtual_stages = parts;
        try_kinds(layout);
      }
    }
  }

  void try_kinds(TrainLayout layout) {
    layout.global_batch = search_.global_batch;
    layout.seq_len = seq_len();
    layout.type = search_.type;
    set_habits(machine_, layout);
    layout.has_sequence_parallel = layout.tensor > 1 && shape_.is_transformer();
    layout.has_async_steps =
        !shape_.is_transformer();  // As in all runs that were published of them.
    for (const RecomputeKind recompute : {RecomputeKind::kNone, RecomputeKind::kSelective,
                                          RecomputeKind::kHalf, RecomputeKind::kFull}) {
      if (recompute == RecomputeKind::kHalf && !shape_.is_transformer()) continue;
      if (recompute == RecomputeKind::kSelective &&
          (layout.has_fused_attention || !shape_.is_transformer())) {
        continue;
      }
      for (const ShardingKind sharding :
           {ShardingKind::kNone, ShardingKind::kState, ShardingKind::kParameters}) {
        if (sharding != ShardingKind::kNone && layout.data == 1) continue;
        if (sharding == ShardingKind::kParameters && layout.pipeline > 1) continue;
        layout.recompute = recompute;
        layout.sharding = sharding;
        try_layout(layout);
      }
    }
  }

  void try_layout(const TrainLayout& layout) {
    ++found_.num_tried;
    const std::vector<MemoryByKind> memory = rank_memory(shape_, layout, clocks_);
    const double fullest = std::ranges::max_element(memory, {}, &MemoryByKind::total)->total();
    least_ = std::min(least_, fullest);
    if (fullest > search_.memory_part * machine_.accelerator.memory_bytes) return;
    ++found_.num_fitting;
    found_.best.push_back({layout, predict(shape_, machine_, layout, achieved_, clocks_)});
  }

  void refuse_nothing() const {
    if (found_.num_tried == 0) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format(
              "a batch of {}{} cannot be split over {} devices: with tensor groups of "
              "at most {} and {} stages there are replicas that do not divide it; "
              "give a multiple of {}",
              search_.global_batch,
              search_.microbatch > 0 ? fmt::format(" in microbatches of {}", search_.microbatch)
                                     : "",
              num_devices_, machine_.devices_per_host, std::min(kMostStages, shape_.num_blocks()),
              num_devices_ * std::max<std::int64_t>(search_.microbatch, 1)));
    }
    if (found_.num_fitting > 0) return;
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("{} does not fit: the least that a layout of {} devices needs is {:.1f} "
                    "GiB a device, {:.1f} of {:.1f} may be used; take more hosts",
                    shape_.name, num_devices_, least_ / kGiB,
                    search_.memory_part * machine_.accelerator.memory_bytes / kGiB,
                    machine_.accelerator.memory_bytes / kGiB));
  }

  const ModelShape& shape_;
  const Machine& machine_;
  const AchievedParts& achieved_;
  const LayoutSearch& search_;
  std::int64_t num_devices_;
  PipelineClocks clocks_;
  LayoutsFound found_;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace

LayoutsFound search_layouts(const ModelShape& shape, const Machine& machine,
                            const AchievedByDevice& achieved, const LayoutSearch& search) {
  check(shape);
  if (search.num_hosts < 1 || search.global_batch < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("hosts and batch must be at least 1, got {} and {}", search.num_hosts,
                            search.global_batch));
  }
  for (const auto& [what, value] : {std::pair{"hosts", search.num_hosts},
                                    {"the batch", search.global_batch},
                                    {"seq_len", search.seq_len},
                                    {"the microbatch", search.microbatch}}) {
    if (value <= kMostOfLayout) continue;
    throw Error(ErrorKind::kInvalidArgument, fmt::format("{} is {}, above 2^20", what, value));
  }
  check_type(machine, search.type);
  return Searcher(shape, machine, achieved_of(achieved, machine.accelerator.name), search).run();
}

std::string limit_of(const AnalyticStep& step) {
  const std::array<std::pair<double, const char*>, 5> parts = {{
      {step.tensor_s, "collectives in layers"},
      {step.transfer_s, "messages between stages"},
      {step.bubble_s, "bubble"},
      {step.reduction_s, "sum of gradients"},
      {step.update_s + step.other_s, "optimizer"},
  }};
  const auto& [seconds, name] = *std::ranges::max_element(parts);
  const double part = 100 * seconds / step.step_s;
  if (part < 5) return fmt::format("compute {:.0f} %", 100 * step.compute_s / step.step_s);
  return fmt::format("{} {:.0f} %", name, part);
}

}  // namespace trireme::analytic
