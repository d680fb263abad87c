#include "trireme/plan/simulate/crowded_cores.h"

namespace trireme::simulate {

std::vector<topology::SharedCores> crowded_cores(const topology::Topology& topology,
                                                 int num_ranks) {
  std::vector<topology::SharedCores> crowded = topology::shared_cores(topology);
  for (topology::SharedCores& shared : crowded) {
    std::erase_if(shared.ranks, [num_ranks](int rank) { return rank >= num_ranks; });
  }
  std::erase_if(crowded, [](const topology::SharedCores& shared) {
    return static_cast<double>(shared.ranks.size()) <= shared.num_at_full_speed;
  });
  return crowded;
}

}  // namespace trireme::simulate
