#include "trireme/plan/simulate/stage_tensors.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/simulate/backward_parts.h"
#include "trireme/plan/simulate/gradient_rules.h"
#include "trireme/plan/simulate/interval_sum.h"
#include "trireme/plan/simulate/region_tensors.h"
#include "trireme/plan/simulate/stage_cost.h"
#include "trireme/plan/simulate/stage_memory.h"

// The nodes of a stage are numbered t = 0, 1, ... in its order of execution; what is in memory
// while node t runs is a sum over intervals of t. Forward:
//
//     memory made by t0, last used by t1     [t0, t1]; to the end where a node saves it or it is
//                                            sent: the run holds what it sends until the backward
//     received values with a gradient        all: the stand-in lives until the backward is done
//     received values without                up to the last use, or to the end where one is saved
//     fields of the batch that are saved     all; others are counted as batch, elsewhere
//     what a node keeps besides              [t, end]
//     workspace                              t
//
// Backward, t going down; each node's saved tensors are freed once its backward has run:
//
//     memory saved first by t0               [t0, end]
//     received values with a gradient        all
//     what a node keeps besides              [t, end]
//     gradients that come from later stages  all: whoever received them holds them
//     gradient of a value made by t0         [t0, t1], t1 its last use; a further use makes a part
//                                            that lives at that use alone, until it is added
//     gradient of a received value           [0, t1]: captured until the backward is done
//     gradients of parameters, workspace     t
//
// A backward in two parts: nodes that wait (matrix products, convolutions with a parameter, on the way to a received
// value) get the gradient of the parameter in the second. What they saved and the gradients of their results stay to the
// end of the first, as do gradients of other parameters, and of those that a node which does not wait takes a view of. What leads to no received value, and a stage that receives none
// with a gradient, waits whole (backward_parts.h).

namespace trireme::simulate {
namespace {

using graph::ValueId;

class StageWalk {
 public:
  /// rules   must outlive the walk.
  StageWalk(const TensorRules& rules, std::vector<int> positions)
      : rules_(rules),
        graph_(rules.graph),
        microbatch_(rules.microbatch),
        positions_(std::move(positions)),
        end_(static_cast<int>(positions_.size()) - 1),
        forward_(end_ + 1),
        backward_(end_ + 1),
        split_(end_ + 1),
        late_(end_ + 1) {}

  /// stays   it is held to the end whatever its nodes save.
  void receive(ValueId id, bool goes_on, bool stays) {
    const graph::Value& value = graph_.values[id];
    MemoryPiece piece{span_bytes(value, microbatch_), 0, 0};
    piece.is_leaf = value.requires_grad || stays;
    received_[value.storage_id].push_back(pieces_.size());
    pieces_.push_back(piece);
    if (!value.requires_grad) return;
    gradients_[id] = {gradient_bytes(id), 0};
    leaves_.insert(id);
    if (goes_on) hold_received_gradient(id);
  }

  void send(ValueId id) { sent_.push_back(id); }

  StageTensors measure() {
    walk();
    return {.kept = kept_,
            .forward_peak = std::max(kept_, forward_.peak()),
            .backward_peak = std::max(kept_, backward_.peak()),
            .input_peak = is_first() ? kept_ + received_gradients_ : std::max(kept_, split_.peak()),
            .waiting = is_first() ? kept_ + received_gradients_ : waiting_,
            .weight_peak = is_first() ? std::max(kept_ + received_gradients_, backward_.peak())
                                      : waiting_ + std::max(largest_weight_, late_.peak())};
  }

  /// By t: the larger of what passes in the forward and in the backward.
  std::vector<std::int64_t> passing() {
    walk();
    std::vector<std::int64_t> most = forward_.passing.sums();
    const std::vector<std::int64_t> backward = backward_.passing.sums();
    for (std::size_t t = 0; t < most.size(); ++t) most[t] = std::max(most[t], backward[t]);
    return most;
  }

 private:
  void walk() {
    parts_ = backward_parts(graph_, rules_.parameters, positions_, leaves_);
    for (int t = 0; t <= end_; ++t) make_outputs(t);
    for (int t = 0; t <= end_; ++t) use_inputs(t);
    for (const ValueId id : sent_) add_sent(id);
    for (const MemoryPiece& piece : pieces_) add_piece(piece);
    for (const auto& [value, uses] : gradients_) {
      add_gradient(uses, rules_.parameters.contains(graph_.values[value].storage_id));
    }
  }

  Pass& part_of(int t) { return is_late(t) ? late_ : split_; }

  const graph::Node& node(int t) const { return graph_.nodes[positions_[t]]; }

  /// Nobody waits for its backward.
  bool is_first() const { return leaves_.empty(); }

  /// What it saved is still needed after the first part.
  bool waits(int t) const { return parts_[t] != BackwardPart::kFirst; }
  bool is_late(int t) const { return parts_[t] == BackwardPart::kSecond; }

  void hold_received_gradient(ValueId id) {
    received_gradients_ += gradient_bytes(id);
    backward_.held.add(0, end_, gradient_bytes(id));
    split_.held.add(0, end_, gradient_bytes(id));
  }

  std::int64_t gradient_bytes(ValueId value) const {
    return graph::bytes_at(graph_.values[value], microbatch_);
  }

  /// Pieces that hold the memory of `value` here; none where it comes with the model.
  std::vector<std::size_t> pieces_of(ValueId value) const {
    const int storage = graph_.values[value].storage_id;
    std::vector<std::size_t> pieces;
    if (const auto found = received_.find(storage); found != received_.end()) {
      pieces = found->second;
    }
    if (const auto own = made_.find(storage); own != made_.end()) pieces.push_back(own->second);
    return pieces;
  }

  void make_outputs(int t) {
    const std::vector<ValueId> inputs = graph::input_values(node(t));
    for (const ValueId id : node(t).outputs) {
      if (id < 0 || graph_.values[id].producer != node(t).id) continue;
      const graph::Value& value = graph_.values[id];
      const bool is_view = std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) {
        return graph_.values[input].storage_id == value.storage_id;
      });
      const std::int64_t bytes = span_bytes(value, microbatch_);
      if (!is_view && !made_.contains(value.storage_id)) {
        made_[value.storage_id] = pieces_.size();
        pieces_.push_back({bytes, t, t});
      }
      if (const auto own = made_.find(value.storage_id); own != made_.end()) {
        MemoryPiece& piece = pieces_[own->second];
        piece.bytes = std::max(piece.bytes, bytes);
      }
      if (value.requires_grad)
        gradients_[id] = {.bytes = gradient_bytes(id),
                          .made = t,
                          .waits = waits(t) && !is_late(t),
                          .is_late = is_late(t)};
    }
  }

  void use_inputs(int t) {
    const std::vector<ValueId> inputs = graph::input_values(node(t));
    const profile::NodeCost& cost = *rules_.costs[positions_[t]];
    for (const ValueId id : inputs) touch(id, t);
    for (const int index : cost.saved_inputs) save(inputs[index], t);
    for (const int index : cost.saved_outputs) save(node(t).outputs[index], t);
    kept_ += cost.kept_bytes;
    forward_.held.add(t, end_, cost.kept_bytes);
    backward_.held.add(t, end_, cost.kept_bytes);
    split_.held.add(waits(t) ? 0 : t, end_, cost.kept_bytes);
    if (waits(t)) waiting_ += cost.kept_bytes;
    forward_.passing.add(t, t, cost.forward_workspace_bytes);
    use_gradients(t, {inputs.begin(), inputs.end()}, cost.backward_workspace_bytes);
  }

  void touch(ValueId id, int t) {
    for (const std::size_t p : pieces_of(id)) {
      pieces_[p].last_use = std::max(pieces_[p].last_use, t);
    }
  }

  void save(ValueId id, int t) {
    if (id < 0) return;
    const int storage = graph_.values[id].storage_id;
    const auto field = rules_.batch.find(storage);
    if (field != rules_.batch.end() && made_.try_emplace(storage, pieces_.size()).second) {
      pieces_.push_back({field->second});
    }
    for (const std::size_t p : pieces_of(id)) {
      MemoryPiece& piece = pieces_[p];
      if (piece.first_saved < 0) piece.first_saved = t;
      if (waits(t)) {
        piece.waits = true;
      } else if (piece.first_now < 0) {
        piece.first_now = t;
      }
      piece.last_use = std::max(piece.last_use, t);
    }
  }

  void use_gradients(int t, const std::set<ValueId>& inputs, std::int64_t workspace) {
    const auto& outputs = node(t).outputs;
    const bool has_backward =
        node(t).flags.grad_mode && std::any_of(outputs.begin(), outputs.end(), [&](ValueId id) {
          return id >= 0 && graph_.values[id].requires_grad;
        });
    if (!has_backward) return;
    backward_.passing.add(t, t, workspace);
    part_of(t).passing.add(t, t, workspace);
    for (const ValueId id : inputs) {
      const graph::Value& value = graph_.values[id];
      if (!value.requires_grad) continue;
      const bool hands_on = hands_on_gradient(graph_, node(t), id);
      const auto uses = gradients_.find(id);
      if (uses == gradients_.end()) {  // A parameter.
        add_parameter_gradient(t, graph::bytes_at(value, 0), hands_on);
        continue;
      }
      // The part of a use before the last one is alive beside the sum, until it is added.
      if (uses->second.last_use >= 0 && !uses->second.last_hands_on) {
        const int last = uses->second.last_use;
        backward_.passing.add(last, last, uses->second.bytes);
        part_of(last).passing.add(last, last, uses->second.bytes);
      }
      uses->second.last_use = t;
      if (!waits(t) && !node(t).flags.view) uses->second.first_part = t;
      uses->second.last_hands_on = hands_on;
    }
  }

  /// hands_on   it is the memory of the gradient of what the node makes, such as a transposed weight.
  void add_parameter_gradient(int t, std::int64_t bytes, bool hands_on) {
    const std::int64_t fresh = hands_on ? 0 : bytes;
    backward_.passing.add(t, t, fresh);
    if (is_late(t)) {
      late_.passing.add(t, t, fresh);
    } else if (node(t).flags.view) {  // Comes with the gradient of the view.
      gradients_.at(node(t).outputs[0]).parameter_bytes = fresh;
    } else if (waits(t)) {
      largest_weight_ = std::max(largest_weight_, bytes);
    } else {
      split_.passing.add(0, t, bytes);
      waiting_ += bytes;
    }
  }

  void add_sent(ValueId id) {
    for (const std::size_t p : pieces_of(id)) pieces_[p].is_sent = true;
    if (!graph_.values[id].requires_grad) return;
    hold_received_gradient(id);
    const auto own = gradients_.find(id);
    if (own != gradients_.end() && own->second.is_late) waiting_ += own->second.bytes;
  }

  void add_piece(const MemoryPiece& piece) {
    if (piece.is_sent || piece.is_leaf || piece.first_saved >= 0) {
      kept_ += piece.bytes;
      forward_.held.add(piece.made, end_, piece.bytes);
    } else {
      forward_.passing.add(piece.made, piece.last_use, piece.bytes);
    }
    if (piece.waits) waiting_ += piece.bytes;
    if (piece.is_leaf) {
      backward_.held.add(0, end_, piece.bytes);
      split_.held.add(0, end_, piece.bytes);
    } else if (piece.first_saved >= 0) {
      backward_.held.add(piece.first_saved, end_, piece.bytes);
      split_.held.add(piece.waits ? 0 : piece.first_now, end_, piece.bytes);
    }
  }

  void add_gradient(const GradientUses& uses, bool is_of_parameter) {
    const int last = uses.last_use - (uses.last_hands_on ? 1 : 0);
    backward_.passing.add(uses.made, last, uses.bytes);
    if (uses.is_late) return late_.passing.add(uses.made, last, uses.bytes);
    if (is_of_parameter) return add_view_gradient(uses);
    split_.passing.add(uses.waits ? 0 : uses.made, last, uses.bytes);
    if (uses.waits) waiting_ += uses.bytes;
  }

  /// Of a view of a parameter: made where a node that waits runs, or in the first part, after which it waits.
  void add_view_gradient(const GradientUses& uses) {
    if (uses.first_part < 0) {
      largest_weight_ = std::max(largest_weight_, uses.bytes + uses.parameter_bytes);
      return;
    }
    const bool has_own = uses.parameter_bytes > 0;
    const std::int64_t kept = has_own ? uses.parameter_bytes : uses.bytes;
    waiting_ += kept;
    split_.passing.add(0, has_own ? uses.made : uses.first_part, kept);
    if (has_own) split_.passing.add(uses.made, uses.first_part, uses.bytes);
  }

  const TensorRules& rules_;
  const graph::Graph& graph_;
  std::int64_t microbatch_;
  std::vector<int> positions_;
  int end_;
  Pass forward_;
  Pass backward_;
  Pass split_;  ///< The first of two parts.
  Pass late_;   ///< Nodes whose backward is in the second part.
  std::vector<BackwardPart> parts_;
  std::set<ValueId> leaves_;  ///< Received values with a gradient.
  std::int64_t kept_ = 0, waiting_ = 0, largest_weight_ = 0, received_gradients_ = 0;
  std::vector<MemoryPiece> pieces_;
  std::unordered_map<int, std::size_t> made_;                   ///< By storage.
  std::unordered_map<int, std::vector<std::size_t>> received_;  ///< By storage.
  std::map<ValueId, GradientUses> gradients_;
  std::vector<ValueId> sent_;
};

}  // namespace

TensorRules::TensorRules(const graph::Graph& planned, const profile::Profile& profile,
                         std::int64_t microbatch)
    : graph(planned),
      microbatch(microbatch),
      costs(profile::node_costs(profile, planned)),
      parameters(parameter_storages(planned)),
      batch(batch_storages(planned, microbatch)) {}

std::vector<StageTensors> stage_tensors(const graph::Graph& planned, const layout::Plan& plan,
                                        const profile::Profile& profile) {
  const DividedPlan divided(planned, plan);
  const TensorRules rules(planned, profile, plan.batch.microbatch);
  std::vector<StageTensors> result;
  for (int stage = 0; stage < static_cast<int>(plan.stages.size()); ++stage) {
    const int whole = divided.regions.begin(stage);
    result.push_back(plan.stages[stage].recompute ? recomputed_tensors(rules, divided, stage)
                                                  : tensors_of(rules, divided.nodes_of(whole)));
  }
  return result;
}

StageTensors tensors_of(const TensorRules& rules, StageNodes stage) {
  StageWalk walk(rules, std::move(stage.positions));
  for (const ValueId id : stage.sent) walk.send(id);
  for (const ValueId id : stage.ends) walk.receive(id, false, stage.holds_received);
  for (const ValueId id : stage.passed) walk.receive(id, true, stage.holds_received);
  return walk.measure();
}

std::vector<std::int64_t> passing_bytes(const graph::Graph& planned,
                                        const profile::Profile& profile, std::int64_t microbatch) {
  std::vector<int> positions(planned.nodes.size());
  std::iota(positions.begin(), positions.end(), 0);
  const TensorRules rules(planned, profile, microbatch);
  return StageWalk(rules, positions).passing();
}

}  // namespace trireme::simulate
