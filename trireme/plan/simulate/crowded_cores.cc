#include "trireme/plan/simulate/crowded_cores.h"

#include <utility>

namespace trireme::simulate {

std::vector<topology::SharedCores> crowded_cores(const topology::Topology& topology,
                                                 int num_ranks) {
  std::vector<topology::SharedCores> crowded = topology::shared_cores(topology);
  for (topology::SharedCores& shared : crowded) {
    std::erase_if(shared.ranks, [num_ranks](int rank) { return rank >= num_ranks; });
  }
  std::erase_if(crowded, [](const topology::SharedCores& shared) {
    return std::cmp_less_equal(shared.ranks.size(), shared.num_cores);
  });
  return crowded;
}

}  // namespace trireme::simulate
