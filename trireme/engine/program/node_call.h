#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/model.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::program {

/// The tensor that `node` gets for the parameter with this value: the stand-in of the use site.
using ParameterBinding = std::function<at::Tensor(graph::ValueId parameter, graph::NodeId node)>;

/// One argument: a constant, the tensor in a slot, or a list of either.
struct Operand {
  enum class Kind : std::uint8_t { kConstant, kSlot, kTensorList, kOptionalTensorList };
  Kind kind = Kind::kConstant;
  c10::IValue constant;
  int slot = -1;
  bool is_last_use = false;    ///< The slot is emptied as the argument is taken.
  std::vector<Operand> items;  ///< Of a list: kConstant or kSlot each.
};

enum class CallKind : std::uint8_t {
  kOperator,
  kBatchNorm,  ///< Batch statistics go to the run, the running ones stay.
  kOpaque,
  kSkip,  ///< An increment of a counter, made at the end of the step.
};

/// One node, ready to be called at one batch size.
struct NodeCall {
  CallKind kind = CallKind::kOperator;
  graph::NodeId id = -1;
  graph::NodeId stream_id = -1;  ///< Of a copy, the node it copies.
  graph::NodeFlags flags;
  std::optional<at::ScalarType> autocast;
  std::optional<c10::OperatorHandle> op;
  std::shared_ptr<const OpaqueFunction> opaque;
  std::vector<Operand> operands;
  std::vector<int> outputs;           ///< Slots; -1 where nobody takes it.
  std::vector<int> output_lists;      ///< As in graph::Node.
  std::vector<int> releases;          ///< Slots emptied after the call.
  const graph::Node* node = nullptr;  ///< For messages.
};

/// Sets gradient mode and autocast of the thread as nodes want them; puts back what was at the end.
class ModeScope {
 public:
  ModeScope();
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

  void set(const NodeCall& call);

 private:
  bool grad_;
  bool autocast_;
  at::ScalarType autocast_dtype_;
  bool now_grad_;
  bool now_autocast_;
};

/// Calls the node: takes its arguments from `slots`, puts its outputs there.
///
/// seed   of the node's random stream; used if it is random.
void call(const NodeCall& call, std::vector<at::Tensor>& slots, std::uint64_t seed);

/// What a batch norm computed from one microbatch, for the running statistics.
struct NormStatistics {
  graph::NodeId node;
  at::Tensor mean;
  at::Tensor variance;      ///< Unbiased; f64.
  bool is_strided = false;  ///< The batch was (strided_variance.h).
};

/// As `call` for a batch norm; returns what of the microbatch goes into the running statistics.
NormStatistics call_batch_norm(const NodeCall& call, std::vector<at::Tensor>& slots);

/// Where and at what size a program runs.
struct BatchOnDevice {
  std::int64_t batch;
  at::Device device;  ///< Takes the place of every recorded device.
};

/// What operands are made from.
struct CallContext {
  const graph::Graph& graph;
  const std::vector<at::Tensor>& tensors;  ///< Of the recording, by value id.
  const std::map<std::string, std::shared_ptr<const OpaqueFunction>>& opaques;
  const std::map<graph::ValueId, int>& slot_of;
  const ParameterBinding& parameters;
  BatchOnDevice place;
};

/// Compiles one node. kInvalidArgument where this torch has no such operator or it takes other
/// arguments.
NodeCall make_call(const graph::Node& node, const CallContext& context);

}  // namespace trireme::program
