#include "trireme/engine/record/state_guard.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <mutex>
#include <set>
#include <string>

#include "trireme/plan/graph/graph_queries.h"

namespace trireme::record {

namespace {

std::recursive_mutex generator_mutex;  // The generator is torch's own global.

}  // namespace

GeneratorTurn::GeneratorTurn() { generator_mutex.lock(); }
GeneratorTurn::~GeneratorTurn() { generator_mutex.unlock(); }

void seed_generator(std::uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

void with_seeded_generator(std::uint64_t seed, const std::function<void()>& work) {
  const GeneratorTurn turn;
  seed_generator(seed);
  work();
}

void Reseeder::before(int index, const at::RecordFunction& call) {
  const auto name = call.operator_name();
  if (!name) return;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  if (op && op->hasTag(at::Tag::nondeterministic_seeded)) seed_generator(stream_.of_node(index));
}

void Reseeder::before_opaque(int index, const OpaqueCall&) {
  seed_generator(stream_.of_node(index));
}

TensorKeeper::~TensorKeeper() {
  const c10::NoGradGuard no_grad;
  for (auto& [tensor, copy] : kept_) tensor.copy_(copy);
}

void TensorKeeper::keep(const at::Tensor& tensor) {
  const c10::NoGradGuard no_grad;
  for (const auto& [kept, copy] : kept_) {
    if (kept.is_same(tensor)) return;
  }
  kept_.emplace_back(tensor, tensor.clone());
}

StateGuard::StateGuard(const Model& model, const graph::Graph* recorded)
    : generator_(at::detail::getDefaultCPUGenerator()) {
  for (const NamedTensor& buffer : model.buffers) {
    if (buffer.tensor.defined()) tensors_.keep(buffer.tensor);
  }
  std::set<std::string> written;
  if (recorded != nullptr) {
    for (const int p : graph::written_parameters(*recorded)) {
      written.insert(recorded->parameters[p].name);
    }
  }
  for (const auto& [name, tensor] : model.parameters) {
    if (written.contains(name)) tensors_.keep(tensor);
  }
  for (const auto& [name, tensor] : model.parameters) {
    if (tensor.defined()) parameters_.push_back({tensor, tensor.requires_grad(), tensor.grad()});
  }
  generator_state_ = generator_.get_state();
}

StateGuard::~StateGuard() {
  for (GradientState& state : parameters_) {
    if (state.parameter.requires_grad() != state.is_required) {
      state.parameter.set_requires_grad(state.is_required);
    }
    state.parameter.mutable_grad() = state.gradient;
  }
  generator_.set_state(generator_state_);
}

ModeGuard::ModeGuard(const Model& model, graph::Mode mode) : model_(model) {
  model.set_training(mode == graph::Mode::kTrain);
}

ModeGuard::~ModeGuard() { model_.set_training(true); }

}  // namespace trireme::record
