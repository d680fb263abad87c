#include "trireme/engine/program/node_call.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "trireme/engine/program/stage_autograd.h"
#include "trireme/engine/program/strided_variance.h"
#include "trireme/engine/record/buffer_policies.h"
#include "trireme/engine/record/graph_difference.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/error.h"

namespace trireme::program {
namespace {

using record::batch_norm::kRunningMean, record::batch_norm::kRunningVar;
using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::variable_list;

at::Tensor take_tensor(const Operand& operand, std::vector<at::Tensor>& slots) {
  if (operand.kind == Operand::Kind::kConstant) {
    return operand.constant.isNone() ? at::Tensor() : operand.constant.toTensor();
  }
  at::Tensor& slot = slots[operand.slot];
  return operand.is_last_use ? std::move(slot) : slot;
}

c10::IValue take(const Operand& operand, std::vector<at::Tensor>& slots) {
  switch (operand.kind) {
    case Operand::Kind::kConstant:
      return operand.constant;
    case Operand::Kind::kSlot:
      return {take_tensor(operand, slots)};
    case Operand::Kind::kTensorList: {
      c10::List<at::Tensor> list;
      list.reserve(operand.items.size());
      for (const Operand& item : operand.items) list.push_back(take_tensor(item, slots));
      return {std::move(list)};
    }
    case Operand::Kind::kOptionalTensorList: {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(operand.items.size());
      for (const Operand& item : operand.items) {
        at::Tensor tensor = take_tensor(item, slots);
        list.push_back(tensor.defined() ? std::optional(std::move(tensor)) : std::nullopt);
      }
      return {std::move(list)};
    }
  }
  return {};
}

void put(at::Tensor tensor, const NodeCall& call, std::size_t& next,
         std::vector<at::Tensor>& slots) {
  const int slot = call.outputs[next++];
  if (slot >= 0) slots[slot] = std::move(tensor);
}

void put_outputs(std::vector<c10::IValue>& stack, const NodeCall& call,
                 std::vector<at::Tensor>& slots) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < call.output_lists.size(); ++i) {
    if (call.output_lists[i] < 0) {
      put(stack[i].isNone() ? at::Tensor() : std::move(stack[i]).toTensor(), call, next, slots);
      continue;
    }
    const auto list = stack[i].toListRef();
    if (static_cast<int>(list.size()) != call.output_lists[i]) {
      throw Error(ErrorKind::kInvalidArgument,
                  record::name_of(*call.node) + " returned " + std::to_string(list.size()) +
                      " tensors, recorded were " + std::to_string(call.output_lists[i]));
    }
    for (const c10::IValue& item : list) put(item.toTensor(), call, next, slots);
  }
}

std::vector<c10::IValue> take_arguments(const NodeCall& call, std::vector<at::Tensor>& slots) {
  std::vector<c10::IValue> stack;
  stack.reserve(call.operands.size());
  for (const Operand& operand : call.operands) stack.push_back(take(operand, slots));
  return stack;
}

void call_operator(const NodeCall& call, std::vector<c10::IValue> stack,
                   std::vector<at::Tensor>& slots) {
  call.op->callBoxed(stack);
  put_outputs(stack, call, slots);
}

TensorList take_list(const Operand& operand, std::vector<at::Tensor>& slots) {
  TensorList list;
  for (const Operand& item : operand.items) list.push_back(take_tensor(item, slots));
  return list;
}

/// Backward of an opaque call: runs the inner graph and hands on what reaches its leaves.
class OpaqueNode : public torch::autograd::Node {
 public:
  OpaqueNode(edge_list&& next, edge_list roots, edge_list leaves)
      : Node(std::move(next)), roots_(std::move(roots)), leaves_(std::move(leaves)) {}

  variable_list apply(variable_list&& gradients) override {
    edge_list roots;
    variable_list seeds;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      roots.push_back(roots_[i]);
      seeds.push_back(std::move(gradients[i]));
    }
    variable_list result(leaves_.size());
    edge_list wanted;
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (!leaves_[i].is_valid()) continue;
      wanted.push_back(leaves_[i]);
      positions.push_back(i);
    }
    if (roots.empty() || wanted.empty()) return result;
    variable_list captured = torch::autograd::Engine::get_default_engine().execute(
        roots, seeds, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/false,
        wanted);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      result[positions[i]] = std::move(captured[i]);
    }
    return result;
  }

  void release_variables() override {
    roots_.clear();
    leaves_.clear();
  }

 private:
  edge_list roots_;
  edge_list leaves_;
};

/// The inner graph's end at `tensor`; invalid where no gradient is wanted.
Edge leaf_edge(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad() ? torch::autograd::impl::gradient_edge(tensor)
                                                    : Edge();
}

/// Runs an opaque function on tensors of a replay. Its inside is a graph of its own, run backward
/// within the outer backward: gradients leave through the inputs and the stand-ins alone.
///
/// inputs      what the recorded call got.
/// stand_ins   one for each parameter of the function, in its order; their memory is that of the
///             function's own parameters.
/// Threads     the function's parameters are shared by all its calls; calls and backward of one
///             function must not overlap.
TensorList replay_opaque(const OpaqueFunction& function, const TensorList& inputs,
                         const TensorList& stand_ins) {
  if (!at::GradMode::is_enabled()) return function.call(inputs);
  TensorList inner;
  edge_list leaves, next;
  for (const at::Tensor& input : inputs) {
    inner.push_back(input.defined() ? input.detach().requires_grad_(input.requires_grad()) : input);
    leaves.push_back(leaf_edge(inner.back()));
    next.push_back(leaf_edge(input));
  }
  for (std::size_t i = 0; i < stand_ins.size(); ++i) {
    leaves.push_back(leaf_edge(function.parameters[i].tensor));
    next.push_back(leaf_edge(stand_ins[i]));
  }
  const TensorList made = function.call(inner);
  edge_list roots;
  TensorList outputs;
  for (const at::Tensor& tensor : made) {
    outputs.push_back(tensor.defined() ? tensor.detach() : tensor);
    if (leaf_edge(tensor).is_valid()) roots.push_back(leaf_edge(tensor));
  }
  const NodePtr node = make_node<OpaqueNode>(std::move(next), std::move(roots), std::move(leaves));
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (!leaf_edge(made[i]).is_valid()) continue;
    const std::uint32_t input = node->add_input_metadata(outputs[i]);
    torch::autograd::impl::set_gradient_edge(outputs[i], Edge(node, input));
  }
  return outputs;
}

void call_opaque(const NodeCall& call, std::vector<at::Tensor>& slots) {
  const TensorList outputs = replay_opaque(*call.opaque, take_list(call.operands[0], slots),
                                           take_list(call.operands[1], slots));
  if (outputs.size() != call.outputs.size()) {
    throw Error(ErrorKind::kInvalidArgument,
                record::name_of(*call.node) + " returned " + std::to_string(outputs.size()) +
                    " tensors, recorded were " + std::to_string(call.outputs.size()));
  }
  std::size_t next = 0;
  for (const at::Tensor& tensor : outputs) put(tensor, call, next, slots);
}

}  // namespace

ModeScope::ModeScope()
    : grad_(at::GradMode::is_enabled()),
      autocast_(at::autocast::is_autocast_enabled(at::kCPU)),
      autocast_dtype_(at::autocast::get_autocast_dtype(at::kCPU)),
      now_grad_(grad_),
      now_autocast_(autocast_) {}

ModeScope::~ModeScope() {
  at::GradMode::set_enabled(grad_);
  if (now_autocast_) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, autocast_);
  at::autocast::set_autocast_dtype(at::kCPU, autocast_dtype_);
}

void ModeScope::set(const NodeCall& call) {
  if (call.flags.grad_mode != now_grad_) {
    now_grad_ = call.flags.grad_mode;
    at::GradMode::set_enabled(now_grad_);
  }
  if (call.autocast.has_value() != now_autocast_) {
    if (now_autocast_) at::autocast::clear_cache();
    now_autocast_ = call.autocast.has_value();
    at::autocast::set_autocast_enabled(at::kCPU, now_autocast_);
  }
  if (call.autocast) at::autocast::set_autocast_dtype(at::kCPU, *call.autocast);
}

void call(const NodeCall& call, std::vector<at::Tensor>& slots, std::uint64_t seed) {
  const auto run = [&] {
    if (call.kind == CallKind::kOpaque) return call_opaque(call, slots);
    call_operator(call, take_arguments(call, slots), slots);
  };
  if (call.flags.random) {
    record::with_seeded_generator(seed, run);
  } else {
    run();
  }
}

NormStatistics call_batch_norm(const NodeCall& call, std::vector<at::Tensor>& slots) {
  std::vector<c10::IValue> stack = take_arguments(call, slots);
  const auto zeros = [&](std::size_t index) {
    const c10::IValue& buffer = call.operands[index].constant;
    return buffer.isNone() ? at::Tensor() : at::zeros_like(buffer.toTensor());
  };
  const at::Tensor mean = zeros(kRunningMean), variance = zeros(kRunningVar);
  stack[kRunningMean] = mean;
  stack[kRunningVar] = variance;
  const at::Tensor input = stack[0].toTensor();
  call_operator(call, std::move(stack), slots);
  NormStatistics result{call.id, mean, variance.defined() ? variance.to(at::kDouble) : variance};
  result.is_strided = is_strided(input) && call.op->operator_name().name == "aten::batch_norm";
  if (result.is_strided && variance.defined() && input.scalar_type() == at::kFloat) {
    result.variance = strided_variance(input, mean);
  }
  return result;
}

}  // namespace trireme::program
