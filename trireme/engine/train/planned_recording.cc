#include "trireme/engine/train/planned_recording.h"

namespace trireme::train {

record::Recording planned_recording(record::Recording recorded, const layout::Plan& plan) {
  recorded.graph = layout::planned_graph(recorded.graph, plan);
  recorded.tensors.resize(recorded.graph.values.size());  // New values are those of nodes.
  return recorded;
}

}  // namespace trireme::train
