#include "trireme/plan/partition/idle_ranks.h"

#include "trireme/plan/schedule/step_facts.h"

namespace trireme::partition {
namespace {

/// Replicas of as many stages on all ranks, where nothing but the lanes kept the plan from having them; else 0.
int replicas_that_lack_lanes(const layout::Role& role, int num_ranks,
                             const PartitionOptions& options) {
  const layout::Mesh& mesh = role.mesh;
  if (!role.is_even()) return 0;
  const int replicas = num_ranks / mesh.pipeline;
  if (options.stages == 0 || options.replicas != 0 || !options.may_replicate) return 0;
  if (options.forecast.program.tolerant || options.batch.num_microbatches() % replicas != 0)
    return 0;
  return schedule::keeps_bits(options.batch, replicas) ? 0 : replicas;
}

}  // namespace

std::string idle_ranks(const layout::Plan& plan, const topology::Topology& topology,
                       const PartitionOptions& options) {
  const layout::Role& role = layout::train_role(plan);
  const int num_ranks = static_cast<int>(topology.ranks.size());
  if (role.num_ranks() == num_ranks) return "";
  const std::string used = std::to_string(role.num_ranks());
  std::string text = "the plan uses " + used + " of the " + std::to_string(num_ranks) +
                     " ranks, the others stay idle; start it with as many";
  if (const int replicas = replicas_that_lack_lanes(role, num_ranks, options); replicas > 1) {
    const std::string lanes = std::to_string(replicas);
    text += ". In " + lanes + " replicas its stages would use " +
            std::to_string(replicas * role.mesh.pipeline) + ": ask for --lanes " + lanes +
            ", which gives other bits than --lanes " + std::to_string(options.batch.lanes);
  }
  return text;
}

}  // namespace trireme::partition
