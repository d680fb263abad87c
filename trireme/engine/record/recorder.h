#pragma once

#include <c10/util/Exception.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "trireme/engine/record/holes.h"
#include "trireme/engine/record/observer.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/record/value_table.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// One forward pass at one batch size: a graph whose sizes are all fixed, and the tensors behind
/// it.
struct Trace {
  graph::Graph graph;
  std::vector<at::Tensor> tensors;  ///< By value id; of node outputs empty.
  std::map<std::string, std::shared_ptr<const OpaqueFunction>> opaques;
  std::vector<OpaqueLeaf> opaque_leaves;  ///< That no recorded tensor is.
  /// Buffers whose value the program has read; other recordings have other values there.
  std::vector<at::Tensor> read_counters;
};

/// Runs `model.forward(batch)` once and writes down what it calls.
///
/// Throws kInvalidArgument, naming the operator and the nearest parameters, for what a replay could
/// not repeat (the holes listed in the room's README). Leaves buffers and the generator changed.
Trace trace(const Model& model, const Batch& batch, graph::Mode mode);

namespace internal {

/// Builds the graph of a Trace, operator by operator.
class Recorder : public OperatorListener {
 public:
  Recorder(const Model& model, const Batch& batch, graph::Mode mode);

  void before(int index, const at::RecordFunction& call) override;
  void after(int index, const at::RecordFunction& call) override;
  void before_opaque(int index, const OpaqueCall& call) override;
  void after_opaque(int index, const OpaqueCall& call) override;

  /// Throws a SizeProblem that says where torch failed.
  [[noreturn]] void explain(const c10::Error& failure) const;

  /// Call after the forward, its observation over.
  Trace finish(const Losses& losses);

 private:
  static constexpr const char* kOpaqueRemedy =
      "Mark the code around it with trireme::opaque to run it as one node";

  /// A tensor among an operator's inputs and its state before the call.
  struct InputTensor {
    at::Tensor tensor;
    graph::ValueId value;
    std::int64_t version;
    bool declared_write;  ///< By the operator's schema.
  };

  /// The program has read a buffer that counts forwards.
  struct CounterRead {
    graph::ValueId counter;
    std::int64_t number;
    std::size_t position;  ///< Of the next node.
    graph::Node node;      ///< The operator that read it.
  };

  void add_registered(const Model& model);
  void add_batch(const Model& model, const Batch& batch);
  void begin_node(int index, std::string op, std::string overload);
  graph::Argument to_argument(const c10::IValue& value, const c10::Type& type);
  graph::Argument to_argument(const at::Tensor& tensor);
  void take_inputs(const c10::FunctionSchema& schema, c10::ArrayRef<const c10::IValue> inputs);
  void take_outputs(const std::vector<c10::IValue>& outputs);
  void take_output(const at::Tensor& tensor);
  void take_writes();
  bool is_from_data(const at::Tensor& tensor) const;
  bool has_inputs_from_data() const;
  bool depends_on_data(c10::ArrayRef<const c10::IValue> values) const;
  void follow_data();
  void take_answer(const std::vector<c10::IValue>& outputs);
  void take_equality(bool answer);
  bool take_counter();
  void settle_counters();
  std::string buffer_name(graph::ValueId value) const;
  void settle_uninitialised();
  void make_constant(graph::ValueId value, std::size_t position);
  void forget_outputs() const;
  void end_node();
  void check_gradients_and_hooks();
  void check_rescaled(const graph::Graph& graph);
  graph::LossOutput to_loss(const Loss& loss) const;
  graph::Output to_output(const Loss& output) const;
  void take_results(const Losses& losses);
  graph::ValueId scalar_value(const at::Tensor& tensor, const std::string& name) const;
  /// The operator being recorded, and `what` cannot be repeated about it; `remedy` is a sentence.
  [[noreturn]] void refuse(const std::string& what,
                           const std::string& remedy = kOpaqueRemedy) const;
  /// The same as a DataProblem.
  [[noreturn]] void refuse_data(const std::string& what) const;
  std::string refusal(const std::string& what, const std::string& remedy) const;
  [[noreturn]] void refuse_toggle(const std::string& what) const;
  std::string place_text() const;

  graph::Graph graph_;
  ValueTable table_;
  /// Values that another step may find changed: what it is given, parameters, buffers, random numbers, and
  /// whatever was computed from them. Others follow from shapes and constants alone.
  std::unordered_set<graph::ValueId> from_data_;
  graph::Node node_;                 ///< The one being recorded.
  std::vector<InputTensor> inputs_;  ///< Of the node being recorded.
  std::string nearest_parameter_;
  std::int64_t num_samples_ = 0;
  bool forgets_ = false;  ///< Values are of no interest: parameters have none yet (Model::fill).
  std::map<graph::ValueId, at::Tensor> buffer_data_;  ///< As last seen, to notice silent writes.
  std::map<graph::ValueId, std::int64_t> initial_counters_;  ///< 0-dim integer buffers.
  std::vector<CounterRead> counter_reads_;
  std::map<graph::ValueId, std::string> parameter_names_;
  /// Outputs of empty() whose memory nobody has written yet: value -> position of the node.
  std::map<graph::ValueId, std::size_t> uninitialised_;
  std::unordered_set<std::size_t> dropped_;  ///< Positions of nodes that became constants.
  std::map<std::string, std::shared_ptr<const OpaqueFunction>> opaques_;
  std::vector<OpaqueLeaf> opaque_leaves_;
  TensorKeeper rescaled_;  ///< Parameters whose rows were rescaled.
};

}  // namespace internal
}  // namespace trireme::record
