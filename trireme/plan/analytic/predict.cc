#include "trireme/plan/analytic/predict.h"

#include <algorithm>
#include <vector>

#include "trireme/plan/analytic/block_time.h"

namespace trireme::analytic {
namespace {

/// Compute with collectives beside it: the longer of the two, and a part of the shorter, since both
/// want the same memory and units.
double beside(double compute, double comm, double part) {
  return std::max(compute, comm) + part * std::min(compute, comm);
}

struct BlockSeconds {
  double forward = 0, backward = 0;
  double tensor = 0;  ///< Of both: what compute waits for.
};

BlockSeconds block_seconds(const BlockTime& time, const TrainLayout& layout,
                           const AchievedParts& achieved) {
  const double compute = time.forward_s + time.backward_s + time.recompute_s;
  BlockSeconds result{time.forward_s + time.forward_comm_s,
                      time.backward_s + time.recompute_s + time.backward_comm_s, 0};
  if (layout.sharding >= ShardingKind::kGradients) {
    const double part = achieved.hidden_sharding;
    const bool gathers_again = layout.sharding == ShardingKind::kParameters;
    result.forward = beside(result.forward, time.gather_s, part);
    result.backward =
        beside(result.backward, time.scatter_s + (gathers_again ? time.gather_s : 0), part);
  }
  result.tensor = result.forward + result.backward - compute;
  return result;
}

/// Seconds of the sum of a rank's gradients over replicas.
double reduction_s(const GroupTimes& groups, const TrainLayout& layout,
                   const AchievedParts& achieved, double num_parameters) {
  if (layout.sharding >= ShardingKind::kGradients) return 0;
  const CollectiveGroup group{layout.data * layout.context, layout.tensor};
  const double bytes = gradient_bytes(layout);
  const double seconds = layout.sharding == ShardingKind::kState
                             ? groups.gather_s(group, bytes * num_parameters) +
                                   groups.gather_s(group, 2 * num_parameters)
                             : groups.all_reduce_s(group, bytes * num_parameters);
  return seconds * (layout.is_overlapped ? achieved.hidden_reduction : 1);
}

}  // namespace

StageSeconds stage_seconds(const ModelShape& shape, const Machine& machine,
                           const TrainLayout& layout, const AchievedParts& achieved) {
  const BlockTimes blocks(shape, machine, layout, achieved);
  const BlockSeconds encoder = block_seconds(blocks.block(0), layout, achieved);
  const BlockSeconds decoder =
      block_seconds(blocks.block(shape.num_blocks() - 1), layout, achieved);
  const std::int64_t parts = layout.pipeline * layout.virtual_stages;
  const std::vector<std::int64_t> first = split_blocks(shape.num_blocks(), parts);
  StageSeconds result{{std::vector<double>(parts), std::vector<double>(parts)},
                      std::vector<double>(parts)};
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t block = first[part]; block < first[part + 1]; ++block) {
      const bool is_last_kind = block >= shape.layers;
      const BlockSeconds one = shape.is_transformer()
                                   ? (is_last_kind ? decoder : encoder)
                                   : block_seconds(blocks.block(block), layout, achieved);
      result.times.forward[part] += one.forward;
      result.times.backward[part] += one.backward;
      result.tensor[part] += one.tensor;
    }
  }
  const BlockTime head = blocks.head();
  result.times.forward.back() += head.forward_s;
  result.times.backward.back() += head.backward_s;
  if (layout.pipeline > 1) {
    const double elements = shape.is_transformer()
                                ? layout.tokens() * static_cast<double>(shape.hidden) /
                                      static_cast<double>(layout.tensor)
                                : static_cast<double>(layout.microbatch) * 56 * 56 * 256;
    const GroupTimes groups(machine, achieved);
    const double bytes = layout.type == MatrixType::kF32 ? 4 : 2;
    result.times.hop =
        groups.message_s(layout.tensor * layout.context * layout.data, bytes * elements);
    result.times.hop_blocks = !layout.is_overlapped;
  }
  return result;
}

AnalyticStep predict_time(const ModelShape& shape, const Machine& machine,
                          const TrainLayout& layout, const AchievedParts& achieved,
                          PipelineClocks& clocks) {
  check(shape, layout);
  const StageSeconds stages = stage_seconds(shape, machine, layout, achieved);
  const PlayedPipeline played = clocks.play(
      {layout.schedule, static_cast<int>(layout.pipeline), static_cast<int>(layout.virtual_stages),
       static_cast<int>(layout.num_microbatches())},
      stages.times);
  const BlockTimes blocks(shape, machine, layout, achieved);
  const GroupTimes groups(machine, achieved);
  const std::vector<double> counts = rank_parameters(shape, layout);
  const double replicas = layout.sharding == ShardingKind::kNone
                              ? 1.0
                              : static_cast<double>(layout.data * layout.context);
  AnalyticStep result;
  const auto m = static_cast<double>(layout.num_microbatches());
  for (std::int64_t rank = 0; rank < layout.pipeline; ++rank) {
    const double reduction = reduction_s(groups, layout, achieved, counts[rank]);
    const double update = blocks.update_s(counts[rank] / replicas);
    const double end = played.end[rank] + reduction + update;
    if (end <= result.step_s) continue;
    result.step_s = end;
    result.reduction_s = reduction;
    result.update_s = update;
    result.transfer_s = played.sent[rank];
    result.bubble_s = played.end[rank] - played.busy[rank] - played.sent[rank];
    result.tensor_s = 0;
    for (std::int64_t v = 0; v < layout.virtual_stages; ++v) {
      result.tensor_s += m * stages.tensor[v * layout.pipeline + rank];
    }
    result.compute_s = played.busy[rank] - result.tensor_s;
  }
  result.other_s = layout.has_async_steps ? 0 : achieved.step_ms / 1000;
  result.step_s += result.other_s;
  return result;
}

AnalyticStep predict(const ModelShape& shape, const Machine& machine, const TrainLayout& layout,
                     const AchievedParts& achieved, PipelineClocks& clocks) {
  AnalyticStep result = predict_time(shape, machine, layout, achieved, clocks);
  const std::vector<MemoryByKind> memory = rank_memory(shape, layout, clocks);
  const auto fullest = std::ranges::max_element(memory, {}, &MemoryByKind::total);
  result.memory = *fullest;
  result.fullest_rank = fullest - memory.begin();
  return result;
}

}  // namespace trireme::analytic
