#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// Where the current data of a registered tensor is.
struct Origin {
  int stage = 0;
  std::vector<std::int64_t> shape;
};

/// By name, aliases too; tensors that no stage uses are the same on all ranks and not listed.
///
/// graph   with the plan's copies.
std::map<std::string, Origin> origins(const graph::Graph& graph, const layout::Plan& plan,
                                      const parameters::ParameterStore& store);

}  // namespace trireme::train
