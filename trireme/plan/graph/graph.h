#pragma once

#include <compare>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trireme/dtype.h"

namespace trireme::graph {

/// An integer that may grow with the batch: `per_sample * batch + fixed`.
///
/// Shapes, strides and integer arguments of a recording are sizes; `{0, 8}` is the plain 8.
struct Size {
  std::int64_t per_sample = 0;
  std::int64_t fixed = 0;

  constexpr std::int64_t at(std::int64_t batch) const { return per_sample * batch + fixed; }
  constexpr bool is_fixed() const { return per_sample == 0; }
  auto operator<=>(const Size&) const = default;
};

/// The same for real numbers (a loss divided by the batch size arrives as one).
struct Real {
  double per_sample = 0;
  double fixed = 0;

  constexpr double at(std::int64_t batch) const {
    return per_sample == 0 ? fixed : per_sample * static_cast<double>(batch) + fixed;
  }
  bool operator==(const Real&) const = default;
};

/// Index of a value in `Graph::values`.
using ValueId = int;

/// Fixed at recording, before any pass; the key of random streams. Unique, not always the position.
using NodeId = int;

/// The tensor `value`.
struct ValueRef {
  ValueId value;
  bool operator==(const ValueRef&) const = default;
};

/// A 0-dim tensor that takes part in type promotion as a plain number does (`x / 4`).
struct WrappedNumber {
  std::variant<bool, Size, Real, std::complex<double>> number;
  Dtype dtype;
  bool operator==(const WrappedNumber&) const = default;
};

/// A device by name, `cpu` or `cuda:1`; a run replaces it by the device of the stage.
struct DeviceName {
  std::string name;
  bool operator==(const DeviceName&) const = default;
};

/// `strided`, `sparse`, ... as torch prints it.
struct LayoutName {
  std::string name;
  bool operator==(const LayoutName&) const = default;
};

/// `contiguous`, `preserve`, `channels_last` or `channels_last_3d`.
struct MemoryFormatName {
  std::string name;
  bool operator==(const MemoryFormatName&) const = default;
};

struct Argument;
using ArgumentList = std::vector<Argument>;

/// One argument of an operator: nothing, a tensor, a constant or a list of arguments.
///
/// Which of the operator's types a number or list stands for is told by the operator's schema.
struct Argument {
  using Content =
      std::variant<std::monostate, ValueRef, bool, Size, Real, std::complex<double>, std::string,
                   WrappedNumber, Dtype, DeviceName, LayoutName, MemoryFormatName, ArgumentList>;
  Content content;
  bool operator==(const Argument&) const = default;
};

/// Where a value comes from.
enum class ValueSource : std::uint8_t {
  kInput,       ///< Field of the batch; dimension `Input::batch_dim` grows with it.
  kStepScalar,  ///< Declared 0-dim input that changes from step to step, the same for all samples.
  kParameter,
  kBuffer,
  kConstant,  ///< A tensor that the model holds without registering it; its data is in the graph.
  kNode,      ///< Output of a node.
};

/// A tensor of the recorded forward pass, as it is after its last write.
struct Value {
  ValueSource source = ValueSource::kNode;
  NodeId producer = -1;  ///< For kNode only.
  Dtype dtype = Dtype::kF32;
  std::vector<Size> shape;
  std::vector<Size> strides;  ///< In elements.
  bool requires_grad = false;
  int storage_id = -1;  ///< Values with the same number share memory.
  bool is_ragged =
      false;  ///< Dimensions depend on data (packed sequences); the shape has the most they
              ///< can be. Never sent to another stage.

  bool operator==(const Value&) const = default;
};

struct Autocast {
  std::string device;  ///< `cpu` or `cuda`.
  Dtype dtype = Dtype::kBf16;
  bool operator==(const Autocast&) const = default;
};

/// What a node is like, beyond its arguments.
struct NodeFlags {
  bool grad_mode = true;         ///< Gradients were being recorded when it ran.
  bool random = false;           ///< Draws from the stream (seed, step, microbatch, node id).
  bool view = false;             ///< An output shares memory with an input.
  bool batch_dependent = false;  ///< Some argument grows with the batch.
  bool operator==(const NodeFlags&) const = default;
};

/// An operator call. Outputs are value ids in schema order; an undefined tensor is -1; a list of
/// tensors is spread out, its length in `output_lists` (-1 marks a single tensor).
struct Node {
  NodeId id = -1;
  std::string name;  ///< `decoder.3.attention.query/linear`: module of its parameters, operator.
  std::string op;    ///< `aten::linear`, or `opaque` with the registered name in `overload`.
  std::string overload;  ///< `Tensor` in `aten::add.Tensor`; may be empty.
  ArgumentList inputs;   ///< In schema order, defaults included.
  std::vector<ValueId> outputs;
  std::vector<int> output_lists;
  std::vector<ValueId> writes;  ///< Values it changes in place, buffers included.
  NodeFlags flags;
  std::optional<Autocast> autocast;
  NodeId copy_of = -1;  ///< Of a copied node: the recorded one, whose random stream it shares.

  bool operator==(const Node&) const = default;
};

struct Input {
  std::string name;
  ValueId value = -1;
  int batch_dim = 0;  ///< -1 for a step scalar.
  bool operator==(const Input&) const = default;
};

/// A trainable leaf (or a frozen one: its value then requires no gradient).
struct Parameter {
  std::string name;                  ///< First registered qualified name.
  std::vector<std::string> aliases;  ///< Other names under which the same tensor is registered.
  ValueId value = -1;
  bool operator==(const Parameter&) const = default;
};

/// When changes of a buffer become visible.
enum class BufferPolicy : std::uint8_t {
  kReadOnly,   ///< Never written; every stage that reads it has it.
  kBatchNorm,  ///< Running statistics: microbatch statistics are folded in at the end of a step.
  kCounter,    ///< Only ever incremented by a constant: added up at the end of a step.
  kEager,      ///< Written at once, in microbatch order; several replicas need a policy (--buffer).
};

struct Buffer {
  std::string name;
  std::vector<std::string> aliases;
  ValueId value = -1;
  BufferPolicy policy = BufferPolicy::kReadOnly;
  bool operator==(const Buffer&) const = default;
};

/// Data of a kConstant value, dense in C order.
struct ConstantTensor {
  ValueId value = -1;
  std::vector<std::byte> bytes;
  bool operator==(const ConstantTensor&) const = default;
};

/// One term of the step loss: coefficient x total sum / total weight.
struct LossOutput {
  std::string name;
  ValueId value = -1;  ///< 0-dim; a sum if `weight` is set, else a mean over the samples.
  std::optional<ValueId> weight;  ///< 0-dim, depends on no parameter and no random node.
  double coefficient = 1;         ///< 0 makes it a metric: reported, without a gradient.
  bool operator==(const LossOutput&) const = default;
};

/// What the forward makes of each sample, dimension 0 of the value; for the metrics of an evaluation.
struct Output {
  std::string name;
  ValueId value = -1;
  bool operator==(const Output&) const = default;
};

enum class Mode : std::uint8_t { kTrain, kEval };

/// How large a microbatch is.
struct BatchSize {
  std::int64_t samples = 0;
  int shorter = -1;  ///< Index in Graph::shorter; -1: as long as the graph itself.
  bool operator==(const BatchSize&) const = default;
};

/// A forward pass as data. Plain, caller-synchronised; `check` (graph_check.h) proves its invariants.
struct Graph {
  Mode mode = Mode::kTrain;
  std::string torch_version;  ///< Of the recording; operators may differ between versions.
  /// The only number of samples that it holds for, its sizes then all fixed; 0: any number.
  std::int64_t microbatch = 0;
  std::vector<Value> values;
  std::vector<Node> nodes;  ///< In execution order.
  std::vector<Input> inputs;
  std::vector<Parameter> parameters;  ///< In order of registration.
  std::vector<Buffer> buffers;
  std::vector<ConstantTensor> constants;
  std::vector<LossOutput> losses;
  std::vector<Output> outputs;  ///< In mode kEval alone.

  /// Where dimensions of samples differ in length: those that the graph holds for, by name; the longest.
  std::map<std::string, std::int64_t> lengths;
  /// The same forward at other lengths, shortest first: nothing differs but numbers in `values` and in arguments of `nodes`.
  std::vector<Graph> shorter;

  bool operator==(const Graph&) const = default;
};

}  // namespace trireme::graph
