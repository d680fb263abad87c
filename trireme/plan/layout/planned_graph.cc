#include "trireme/plan/layout/planned_graph.h"

#include "trireme/plan/graph/copies.h"

namespace trireme::layout {

graph::Graph planned_graph(const graph::Graph& recorded, const Plan& plan) {
  return plan.copied_nodes.empty() ? recorded
                                   : graph::copy_to_consumers(recorded, plan.copied_nodes);
}

}  // namespace trireme::layout
