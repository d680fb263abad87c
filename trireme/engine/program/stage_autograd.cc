#include "trireme/engine/program/stage_autograd.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>

#include "trireme/engine/capture/call_listener.h"

namespace trireme::program {
namespace {

thread_local SiteListener* site_listener = nullptr;

}  // namespace

SiteListening::SiteListening(SiteListener& listener) { site_listener = &listener; }

SiteListening::~SiteListening() { site_listener = nullptr; }

at::Tensor make_stand_in(const at::Tensor& tensor, const NodePtr& node) {
  at::Tensor stand_in = tensor.detach();
  const std::uint32_t input = node->add_input_metadata(stand_in);
  torch::autograd::impl::set_gradient_edge(stand_in, torch::autograd::Edge(node, input));
  return stand_in;
}

torch::autograd::variable_list SiteNode::apply(torch::autograd::variable_list&& gradients) {
  if (!gradients[0].defined()) return {};
  // What the sink does with it is not of the backward.
  const capture::ListeningPause pause;
  if (site_listener != nullptr) site_listener->leaving(site_, gradients[0]);
  sink_.accept(site_, gradients[0]);
  return {};
}

torch::autograd::variable_list CaptureNode::apply(torch::autograd::variable_list&& gradients) {
  gradient_ = std::move(gradients[0]);
  return {};
}

SiteTable::SiteTable(const record::Recording& recording, GradientSink& sink)
    : recording_(recording), sink_(sink), sites_(graph::use_sites(recording.graph)) {
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

namespace {

/// Torch's engine, but that it says which function threw.
class NamingEngine : public torch::autograd::Engine {
 public:
  NamingEngine() = default;
  ~NamingEngine() override { stop(); }

  void thread_on_exception(const std::shared_ptr<torch::autograd::GraphTask>& task,
                           const NodePtr& function, std::exception& /*error*/) override {
    // The engine keeps what is being handled when it is told.
    try {
      throw FailedFunction(function ? function->name() : "the engine",
                           function ? function->sequence_nr() : 0, std::current_exception());
    } catch (std::exception& failed) {
      Engine::thread_on_exception(task, function, failed);
    }
  }
};

/// One for the process, as torch asks of engines.
NamingEngine& engine() {
  static NamingEngine engine;
  return engine;
}

}  // namespace

void run_backward(const torch::autograd::edge_list& roots,
                  const torch::autograd::variable_list& gradients) {
  engine().execute(roots, gradients, /*keep_graph=*/false, /*create_graph=*/false,
                   /*accumulate_grad=*/true);
}

torch::autograd::variable_list run_backward_to(const torch::autograd::edge_list& edges,
                                               const torch::autograd::edge_list& roots,
                                               const torch::autograd::variable_list& gradients,
                                               Saved saved) {
  return engine().execute(roots, gradients, /*keep_graph=*/saved == Saved::kKept,
                          /*create_graph=*/false, /*accumulate_grad=*/false, edges);
}

}  // namespace trireme::program
