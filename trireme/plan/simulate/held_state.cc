#include "trireme/plan/simulate/held_state.h"

#include <algorithm>
#include <map>
#include <set>

#include "trireme/plan/schedule/step_facts.h"
#include "trireme/plan/schedule/whole_stages.h"
#include "trireme/plan/simulate/rank_memory.h"

namespace trireme::simulate {
namespace {

/// Bytes of a stage's sharded buckets.
struct StageBytes {
  std::int64_t values = 0, shard_of_values = 0;
  std::int64_t lane = 0, shard_of_sum = 0;
  std::int64_t sent = 0;  ///< Copies of sums, where these are rounded.
};

std::map<int, StageBytes> bytes_of_stages(const layout::Plan& plan, const layout::ParameterMap& map,
                                          int replica, Dtype gradient_dtype) {
  const std::vector<bool> sharded = layout::sharded_buckets(map, plan);
  std::map<int, StageBytes> stages;
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    if (!sharded[b]) continue;
    const layout::Bucket& bucket = map.buckets[b];
    const layout::Shard& shard = bucket.shards[replica];
    const std::int64_t own = shard.end_elements - shard.begin_elements;
    const auto value = static_cast<std::int64_t>(size_bytes(bucket.dtype));
    const std::int64_t summed = gradient_bytes_per_element(bucket.dtype);
    const std::int64_t sent = sent_bytes_per_element(bucket.dtype, gradient_dtype);
    StageBytes& stage = stages[bucket.stage];
    stage.values += bucket.num_elements * value;
    stage.shard_of_values += own * value;
    stage.lane += bucket.num_elements * summed;
    stage.shard_of_sum += own * summed;
    if (sent != summed) stage.sent += bucket.num_elements * sent;
  }
  return stages;
}

/// How far the gradients of a stage are.
struct Progress {
  int num_buffers = 0;  ///< Of lanes.
  int completed = -1;   ///< Place of the action that has completed them.
};

std::int64_t gradient_bytes(const StageBytes& stage, const Progress& progress, int place) {
  const bool is_complete = progress.completed >= 0;
  if (is_complete && place > progress.completed + 1) return stage.shard_of_sum;
  return progress.num_buffers * stage.lane + (is_complete ? stage.sent : 0);
}

}  // namespace

std::vector<HeldState> held_state(const std::vector<schedule::Action>& actions,
                                  const layout::Plan& plan, const layout::ParameterMap& map,
                                  int replica, Dtype gradient_dtype) {
  const std::map<int, StageBytes> stages = bytes_of_stages(plan, map, replica, gradient_dtype);
  const std::vector<schedule::ValueMoves> moves = schedule::value_moves(actions);
  const auto per_lane = static_cast<int>(plan.batch.microbatches_per_lane());
  const int last = layout::num_microbatches_of_replica(plan) - 1;
  std::set<int> ran, whole;
  for (const schedule::Action& action : actions) ran.insert(action.stage);
  std::map<int, Progress> progress;
  std::vector<HeldState> held(actions.size());
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    for (const int stage : moves[i].reshard) whole.erase(stage);
    whole.insert(moves[i].unshard.begin(), moves[i].unshard.end());
    Progress& own = progress[actions[i].stage];
    const bool folds = schedule::completes_gradients(actions[i].kind);
    if (folds) {
      const int lanes = actions[i].microbatch / per_lane + 1;
      own.num_buffers = std::max(own.num_buffers, num_gradient_buffers(lanes));
      if (actions[i].microbatch == last) own.completed = i;
    }
    for (const auto& [stage, bytes] : stages) {
      if (!ran.contains(stage)) continue;
      held[i].parameters += bytes.shard_of_values + (whole.contains(stage) ? bytes.values : 0);
      held[i].gradients += gradient_bytes(bytes, progress[stage], i);
    }
    if (own.completed == i) own.num_buffers = 1;
  }
  return held;
}

}  // namespace trireme::simulate
