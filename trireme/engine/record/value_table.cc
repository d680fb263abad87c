#include "trireme/engine/record/value_table.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "trireme/engine/record/torch_terms.h"

namespace trireme::record {
namespace {

const void* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage()
             ? tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()
             : nullptr;
}

bool has_same_form(const at::Tensor& a, const at::Tensor& b) {
  if (a.layout() != at::kStrided || b.layout() != at::kStrided) return a.sizes() == b.sizes();
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset();
}

const void* grad_node_of(const at::Tensor& tensor) { return tensor.grad_fn().get(); }

std::vector<graph::Size> to_sizes(at::IntArrayRef numbers) {
  std::vector<graph::Size> sizes;
  sizes.reserve(numbers.size());
  for (std::int64_t number : numbers) sizes.push_back({0, number});
  return sizes;
}

constexpr const char* kOtherObject =
    "it takes a tensor that shares memory with a recorded one without an operator between them "
    "(.data(), variable_data()), and the other one was written or reshaped in place since";

}  // namespace

graph::ValueId ValueTable::add(const at::Tensor& tensor, graph::ValueSource source,
                               graph::NodeId producer, const at::Tensor& memory_of) {
  const auto id = static_cast<graph::ValueId>(values_.size());
  values_.push_back({.source = source,
                     .producer = producer,
                     .dtype = to_dtype(tensor.scalar_type()),
                     .storage_id = storage_id(tensor)});
  entries_.emplace_back();
  const Object* parent = memory_of.defined() ? find_object(memory_of) : nullptr;
  add_object(tensor, id, parent == nullptr ? num_families_++ : parent->family);
  if (const void* storage = storage_of(tensor)) by_storage_[storage].push_back(id);
  return id;
}

void ValueTable::add_object(const at::Tensor& tensor, graph::ValueId value, int family) {
  const auto index = static_cast<int>(objects_.size());
  objects_.push_back({.tensor = tensor,
                      .value = value,
                      .family = family,
                      .required_grad = tensor.requires_grad(),
                      .grad_node = grad_node_of(tensor)});
  by_impl_[tensor.unsafeGetTensorImpl()] = index;
  entries_[value].objects.push_back(index);
  entries_[value].current = index;
}

const ValueTable::Object* ValueTable::find_object(const at::Tensor& tensor) const {
  const auto found = by_impl_.find(tensor.unsafeGetTensorImpl());
  return found == by_impl_.end() ? nullptr : &objects_[found->second];
}

std::optional<graph::ValueId> ValueTable::find(const at::Tensor& tensor) const {
  const Object* object = find_object(tensor);
  if (object == nullptr) return std::nullopt;
  return object->value;
}

bool ValueTable::requires_grad(graph::ValueId value) const {
  const std::vector<int>& objects = entries_[value].objects;
  return std::any_of(objects.begin(), objects.end(),
                     [&](int object) { return objects_[object].tensor.requires_grad(); });
}

graph::ValueId ValueTable::find_or_add_constant(const at::Tensor& tensor, std::string& problem) {
  if (const auto known = find(tensor)) return *known;
  const std::vector<graph::ValueId> neighbours = in_storage_of(tensor);
  if (!tensor.requires_grad()) {
    for (graph::ValueId other : neighbours) {
      const at::Tensor& current = objects_[entries_[other].current].tensor;
      const bool is_shallow_copy =
          has_same_form(tensor, current) && tensor.scalar_type() == current.scalar_type();
      if (!is_shallow_copy || requires_grad(other)) continue;
      add_object(tensor, other, num_families_++);
      return other;
    }
  }
  if (!neighbours.empty() || tensor.requires_grad()) {
    problem = why_foreign(tensor, neighbours);
    return -1;
  }
  const graph::ValueId id = add(tensor, graph::ValueSource::kConstant, -1);
  entries_[id].constant = tensor.clone();
  return id;
}

std::string ValueTable::why_foreign(const at::Tensor& tensor,
                                    const std::vector<graph::ValueId>& neighbours) const {
  const bool is_fresh_leaf =
      tensor.requires_grad() && tensor.is_leaf() && !neighbours.empty() &&
      std::all_of(neighbours.begin(), neighbours.end(), [&](graph::ValueId other) {
        return values_[other].source == graph::ValueSource::kNode && !requires_grad(other);
      });
  if (is_fresh_leaf) {
    return "a leaf made inside forward (by requires_grad_(true), a factory with requires_grad or a "
           "module built there), whose gradient nobody would get";
  }
  if (!neighbours.empty()) {
    return "a tensor that shares memory with a recorded one without an operator between them "
           "(.data(), variable_data(), from_blob)";
  }
  return "a tensor that requires a gradient but is neither registered in the model nor made "
         "by an operator (a module built inside forward?)";
}

std::vector<graph::ValueId> ValueTable::in_storage_of(const at::Tensor& tensor) const {
  const void* storage = storage_of(tensor);
  const auto found = by_storage_.find(storage);
  return storage == nullptr || found == by_storage_.end() ? std::vector<graph::ValueId>{}
                                                          : found->second;
}

void ValueTable::take_write(const at::Tensor& tensor) {
  for (graph::ValueId value : in_storage_of(tensor)) {
    for (int index : entries_[value].objects) {
      Object& object = objects_[index];
      object.required_grad = object.tensor.requires_grad();
      object.watches_grad_node = !object.tensor.is_view();
      object.grad_node = object.watches_grad_node ? grad_node_of(object.tensor) : nullptr;
    }
  }
  const Object* written = find_object(tensor);
  if (written == nullptr) return;
  entries_[written->value].current = static_cast<int>(written - objects_.data());
  if (written->required_grad) gradient_family_.emplace(storage_of(tensor), written->family);
}

std::string ValueTable::problem_of_use(const at::Tensor& tensor) const {
  const Object& object = *find_object(tensor);
  if (std::string foreign = foreign_gradient(object); !foreign.empty()) return foreign;
  const at::Tensor& current = objects_[entries_[object.value].current].tensor;
  const auto family = gradient_family_.find(storage_of(tensor));
  const bool misses_gradient = family != gradient_family_.end() && family->second != object.family;
  return misses_gradient || !has_same_form(tensor, current) ? kOtherObject : "";
}

std::string ValueTable::foreign_gradient(const Object& object) const {
  const bool requires_grad = object.tensor.requires_grad();
  if (values_[object.value].source == graph::ValueSource::kParameter) {
    if (requires_grad == object.required_grad) return "";
    return requires_grad ? "requires_grad was set inside forward, and it was frozen before"
                         : "requires_grad was taken off inside forward";
  }
  const bool same_node =
      !object.watches_grad_node || grad_node_of(object.tensor) == object.grad_node;
  if (same_node && requires_grad == object.required_grad) return "";
  return "the backward of its result was set outside the dispatcher (a C++ autograd::Function, or "
         "requires_grad set by hand)";
}

void ValueTable::describe() {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const at::Tensor& tensor = objects_[entries_[i].current].tensor;
    values_[i].shape = to_sizes(tensor.sizes());
    if (tensor.layout() == at::kStrided) values_[i].strides = to_sizes(tensor.strides());
    values_[i].requires_grad = requires_grad(static_cast<graph::ValueId>(i));
  }
}

int ValueTable::storage_id(const at::Tensor& tensor) {
  const void* storage = storage_of(tensor);
  if (storage == nullptr) storage = tensor.unsafeGetTensorImpl();
  return storage_ids_.emplace(storage, static_cast<int>(storage_ids_.size())).first->second;
}

}  // namespace trireme::record
