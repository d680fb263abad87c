#include "trireme/engine/record/value_table.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "trireme/engine/record/convert.h"

namespace trireme::record {
namespace {

const void* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage()
             ? tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()
             : nullptr;
}

bool is_shallow_copy(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset() && a.scalar_type() == b.scalar_type() &&
         !a.requires_grad() && !b.requires_grad();
}

const void* grad_node_of(const at::Tensor& tensor) { return tensor.grad_fn().get(); }

std::vector<graph::Size> to_sizes(at::IntArrayRef numbers) {
  std::vector<graph::Size> sizes;
  sizes.reserve(numbers.size());
  for (std::int64_t number : numbers) sizes.push_back({0, number});
  return sizes;
}

}  // namespace

graph::ValueId ValueTable::add(const at::Tensor& tensor, graph::ValueSource source,
                               graph::NodeId producer) {
  const auto id = static_cast<graph::ValueId>(values_.size());
  values_.push_back({.source = source,
                     .producer = producer,
                     .dtype = to_dtype(tensor.scalar_type()),
                     .storage_id = storage_id(tensor)});
  entries_.push_back({.tensor = tensor,
                      .required_grad = tensor.requires_grad(),
                      .grad_node = grad_node_of(tensor)});
  by_impl_[tensor.unsafeGetTensorImpl()] = id;
  if (const void* storage = storage_of(tensor)) by_storage_[storage].push_back(id);
  return id;
}

std::optional<graph::ValueId> ValueTable::find(const at::Tensor& tensor) const {
  const auto found = by_impl_.find(tensor.unsafeGetTensorImpl());
  if (found == by_impl_.end()) return std::nullopt;
  return found->second;
}

void ValueTable::add_alias(const at::Tensor& tensor, graph::ValueId value) {
  aliases_.push_back(tensor);
  by_impl_[tensor.unsafeGetTensorImpl()] = value;
}

graph::ValueId ValueTable::find_or_add_constant(const at::Tensor& tensor, std::string& problem) {
  if (const auto known = find(tensor)) return *known;
  const std::vector<graph::ValueId> neighbours = in_storage_of(tensor);
  for (graph::ValueId other : neighbours) {
    if (is_shallow_copy(tensor, entries_[other].tensor)) {
      add_alias(tensor, other);
      return other;
    }
  }
  if (!neighbours.empty()) {
    problem =
        "a tensor that shares memory with a recorded one without an operator between them "
        "(.data(), variable_data(), from_blob)";
    return -1;
  }
  if (tensor.requires_grad()) {
    problem =
        "a tensor that requires a gradient but is neither registered in the model nor made "
        "by an operator (a module built inside forward?)";
    return -1;
  }
  const graph::ValueId id = add(tensor, graph::ValueSource::kConstant, -1);
  entries_[id].constant = tensor.clone();
  return id;
}

std::vector<graph::ValueId> ValueTable::in_storage_of(const at::Tensor& tensor) const {
  const void* storage = storage_of(tensor);
  const auto found = by_storage_.find(storage);
  return storage == nullptr || found == by_storage_.end() ? std::vector<graph::ValueId>{}
                                                          : found->second;
}

void ValueTable::refresh_storage_of(const at::Tensor& tensor) {
  for (graph::ValueId value : in_storage_of(tensor)) {
    Entry& entry = entries_[value];
    entry.required_grad = entry.tensor.requires_grad();
    entry.watches_grad_node = !entry.tensor.is_view();
    entry.grad_node = entry.watches_grad_node ? grad_node_of(entry.tensor) : nullptr;
  }
}

std::string ValueTable::foreign_gradient(graph::ValueId value) const {
  const Entry& entry = entries_[value];
  if (values_[value].source != graph::ValueSource::kNode) return "";
  const bool same_node = !entry.watches_grad_node || grad_node_of(entry.tensor) == entry.grad_node;
  if (same_node && entry.tensor.requires_grad() == entry.required_grad) return "";
  return "the backward of its result was set outside the dispatcher (a C++ autograd::Function, or "
         "requires_grad set by hand)";
}

void ValueTable::describe() {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const at::Tensor& tensor = entries_[i].tensor;
    values_[i].shape = to_sizes(tensor.sizes());
    if (tensor.layout() == at::kStrided) values_[i].strides = to_sizes(tensor.strides());
    values_[i].requires_grad = tensor.requires_grad();
  }
}

int ValueTable::storage_id(const at::Tensor& tensor) {
  const void* storage = storage_of(tensor);
  if (storage == nullptr) storage = tensor.unsafeGetTensorImpl();
  return storage_ids_.emplace(storage, static_cast<int>(storage_ids_.size())).first->second;
}

}  // namespace trireme::record
