#include "trireme/engine/program/sites.h"

namespace trireme::program {

SiteTable::SiteTable(const record::Recording& recording, GradientSink& sink)
    : recording_(recording), sites_(graph::use_sites(recording.graph)) {
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const graph::ValueId value = recording.graph.parameters[sites_[i].parameter].value;
    const NodePtr node = make_node<SiteNode>(sink, static_cast<int>(i));
    stand_ins_.push_back(make_stand_in(recording.tensors[value], node));
    for (graph::NodeId user : sites_[i].nodes) site_of_[{value, user}] = i;
  }
}

at::Tensor SiteTable::tensor_for(graph::ValueId parameter, graph::NodeId node) const {
  const auto found = site_of_.find({parameter, node});
  if (found != site_of_.end()) return stand_ins_[found->second];
  return recording_.tensors[parameter].detach();
}

ParameterBinding SiteTable::binding() const {
  return
      [this](graph::ValueId parameter, graph::NodeId node) { return tensor_for(parameter, node); };
}

}  // namespace trireme::program
