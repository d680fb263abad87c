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
/// A tensor object's identity is the address of its TensorImpl, so each is kept alive. A value may
/// have several objects: the factories of `torch::` hand out a shallow copy of what the dispatcher
/// made, and `.data()` of a tensor without a gradient is one too. Each has its own gradient state
/// and shape, so both are asked of every object of a value, at every use. An object that comes from
/// outside becomes a constant, unless it shares memory with a known one in another way: the
/// dispatcher did not see where it came from, so its gradient or freshness would be lost silently.
class ValueTable {
 public:
  /// What a use of an object is judged by: its state when it was last produced or written.
  struct Object {
    at::Tensor tensor;
    graph::ValueId value = -1;
    /// Objects made from each other by operators. Autograd knows of a write to one in all of its
    /// family, and in no other.
    int family = -1;
    bool required_grad = false;
    const void* grad_node = nullptr;
    bool watches_grad_node = true;  ///< Off for a view once its memory is written: it makes its
                                    ///< node anew when asked.
  };

  /// What is known of a value beyond its entry in the graph.
  struct Entry {
    std::vector<int> objects;  ///< Indices of its objects; the first is the one it was added with.
    int current = -1;     ///< The one produced, found or written last: its shape is the value's.
    at::Tensor constant;  ///< Data of a kConstant value, as it was when first seen.
  };

  /// Adds a tensor that is not known yet and returns its value.
  ///
  /// memory_of   a known tensor, if any, that an operator made this one a view of.
  graph::ValueId add(const at::Tensor& tensor, graph::ValueSource source, graph::NodeId producer,
                     const at::Tensor& memory_of = {});

  std::optional<graph::ValueId> find(const at::Tensor& tensor) const;

  /// `find`, or the value of the same data under another object, or a new constant. `problem` says
  /// why it is none of these; the result is then -1.
  graph::ValueId find_or_add_constant(const at::Tensor& tensor, std::string& problem);

  /// Takes note of the gradient state of everything in the memory of `tensor`, after a write to it.
  void take_write(const at::Tensor& tensor);

  /// Empty, or why a replay would use other data, another shape or another gradient than a use of
  /// `tensor` does here. `tensor` is known.
  std::string problem_of_use(const at::Tensor& tensor) const;

  /// Empty, or how the gradient of an object was changed behind the dispatcher's back.
  std::string foreign_gradient(const Object& object) const;

  /// Shapes, strides and gradient flags as they are now, written to the values.
  void describe();

  const Entry& entry(graph::ValueId value) const { return entries_[value]; }
  Entry& entry(graph::ValueId value) { return entries_[value]; }
  const std::vector<Object>& objects() const { return objects_; }

  /// The tensor that `value` was added with.
  const at::Tensor& tensor(graph::ValueId value) const {
    return objects_[entries_[value].objects[0]].tensor;
  }

  std::vector<graph::Value>& values() { return values_; }
  const std::vector<graph::Value>& values() const { return values_; }
  std::vector<graph::ValueId> in_storage_of(const at::Tensor& tensor) const;

 private:
  int storage_id(const at::Tensor& tensor);
  void add_object(const at::Tensor& tensor, graph::ValueId value, int family);
  const Object* find_object(const at::Tensor& tensor) const;
  bool requires_grad(graph::ValueId value) const;
  std::string why_foreign(const at::Tensor& tensor,
                          const std::vector<graph::ValueId>& neighbours) const;

  std::vector<graph::Value> values_;
  std::vector<Entry> entries_;   ///< By value.
  std::vector<Object> objects_;  ///< All of them, so that no address is used twice.
  int num_families_ = 0;
  std::unordered_map<const void*, int> by_impl_;  ///< Index of the object.
  std::unordered_map<const void*, int> storage_ids_;
  std::unordered_map<const void*, std::vector<graph::ValueId>> by_storage_;
  std::unordered_map<const void*, int> gradient_family_;  ///< Of memory written with a gradient.
};

}  // namespace trireme::record
