#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::simulate {

/// Elements of parameters that a rank handles once a step.
struct RankElements {
  std::int64_t owned = 0;          ///< That it updates: of its shards, where state is sharded.
  std::int64_t further_sites = 0;  ///< Of parameters owned here, beyond their first.
  bool operator==(const RankElements&) const = default;
};

/// By replica, by position of the pipeline.
///
/// Cost   slots x replicas.
std::vector<std::vector<RankElements>> rank_elements(const layout::Plan& plan,
                                                     const layout::ParameterMap& map);

}  // namespace trireme::simulate
