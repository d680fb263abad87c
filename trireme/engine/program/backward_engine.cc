#include "trireme/engine/program/backward_engine.h"

#include <torch/csrc/autograd/engine.h>

#include <memory>

#include "trireme/engine/program/autograd_nodes.h"

namespace trireme::program {
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

}  // namespace trireme::program
