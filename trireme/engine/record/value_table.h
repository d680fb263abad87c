#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// The tensors seen so far and the values they are.
///
/// A tensor's identity is the address of its TensorImpl, so each is kept alive. A tensor that comes
/// from outside becomes a constant, unless it shares memory with a known one: the dispatcher did
/// not see where it came from, so its gradient or freshness would be lost silently.
class ValueTable {
 public:
  /// What is known of a value beyond its entry in the graph.
  struct Entry {
    at::Tensor tensor;
    bool required_grad = false;       ///< When it was last produced or written.
    const void* grad_node = nullptr;  ///< Then, too.
    bool watches_grad_node = true;    ///< Off for a view once its memory is written: it makes its
                                      ///< node anew when asked.
    at::Tensor constant;              ///< Data of a kConstant value, as it was when first seen.
  };

  /// Adds a tensor that is not known yet and returns its value.
  graph::ValueId add(const at::Tensor& tensor, graph::ValueSource source, graph::NodeId producer);

  std::optional<graph::ValueId> find(const at::Tensor& tensor) const;

  /// `find`, or the value of the same data under another TensorImpl (factories copy shallowly), or
  /// a new constant. `problem` says why it is none of these; the result is then -1.
  graph::ValueId find_or_add_constant(const at::Tensor& tensor, std::string& problem);

  /// Gives a second tensor object to a known value.
  void add_alias(const at::Tensor& tensor, graph::ValueId value);

  /// Takes note of the gradient state of everything in the memory of `tensor`, after a write to it.
  void refresh_storage_of(const at::Tensor& tensor);

  /// Empty, or how the gradient of `value` was changed behind the dispatcher's back.
  std::string foreign_gradient(graph::ValueId value) const;

  /// Shapes, strides and gradient flags as they are now, written to the values.
  void describe();

  const Entry& entry(graph::ValueId value) const { return entries_[value]; }
  Entry& entry(graph::ValueId value) { return entries_[value]; }
  std::vector<graph::Value>& values() { return values_; }
  const std::vector<graph::Value>& values() const { return values_; }
  std::vector<graph::ValueId> in_storage_of(const at::Tensor& tensor) const;

 private:
  int storage_id(const at::Tensor& tensor);

  std::vector<graph::Value> values_;
  std::vector<Entry> entries_;
  std::vector<at::Tensor> aliases_;  ///< Kept alive, so that no address is used twice.
  std::unordered_map<const void*, graph::ValueId> by_impl_;
  std::unordered_map<const void*, int> storage_ids_;
  std::unordered_map<const void*, std::vector<graph::ValueId>> by_storage_;
};

}  // namespace trireme::record
