#include "trireme/engine/train/origins.h"

#include "trireme/plan/layout/crossings.h"

namespace trireme::train {

std::map<std::string, Origin> origins(const graph::Graph& graph, const layout::Plan& plan,
                                      const parameters::ParameterStore& store) {
  std::map<std::string, Origin> result;
  const auto add = [&](const auto& item, int stage) {
    Origin origin{stage, {}};
    for (const graph::Size& size : graph.values[item.value].shape)
      origin.shape.push_back(size.fixed);
    for (const std::string& alias : item.aliases) result[alias] = origin;
    result[item.name] = origin;
  };
  const auto stages = layout::stages_of_values(graph, plan);
  for (const graph::Parameter& parameter : graph.parameters) {
    const auto used = stages.find(parameter.value);
    if (store.is_trained(parameter.name)) {
      add(parameter, store.map().buckets[store.owner(parameter.name).bucket].stage);
    } else if (used != stages.end()) {
      add(parameter, *used->second.begin());
    }
  }
  for (const graph::Buffer& buffer : graph.buffers) {
    const auto stage = stages.find(buffer.value);
    if (stage != stages.end()) add(buffer, *stage->second.begin());
  }
  return result;
}

}  // namespace trireme::train
