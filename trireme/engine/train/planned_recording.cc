#include "trireme/engine/train/planned_recording.h"

#include "trireme/plan/layout/plan_check.h"

namespace trireme::train {

record::Recording planned_recording(record::Recording recorded, const layout::Plan& plan) {
  recorded.graph = layout::checked_graph(recorded.graph, plan);
  recorded.tensors.resize(recorded.graph.values.size());  // New values are those of nodes.
  return recorded;
}

}  // namespace trireme::train
