#include "trireme/engine/capture/tape_recorder.h"

#include <ATen/core/List.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "trireme/engine/capture/views.h"

namespace trireme::capture {
namespace {

/// Thrown within the recorder alone.
struct Refusal {
  std::string reason;
};

/// Keys of plain tensors on the CPU. Others mean more than memory: conjugates, subclasses.
bool is_plain(const at::Tensor& tensor) {
  using c10::DispatchKey;
  constexpr c10::DispatchKeySet plain({DispatchKey::CPU, DispatchKey::ADInplaceOrView,
                                       DispatchKey::AutogradCPU, DispatchKey::AutocastCPU});
  return tensor.has_storage() && (tensor.key_set() | plain) == plain;
}

template <typename Action>
void for_tensors(const c10::IValue& value, const Action& action) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) action(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) for_tensors(item, action);
  }
}

bool holds_tensors(const c10::IValue& value) {
  bool holds = false;
  for_tensors(value, [&](const at::Tensor&) { holds = true; });
  return holds;
}

/// Whether the shape of what it gives depends on numbers in tensors. An index does so where it is a mask.
bool has_open_shape(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  if (!op.hasTag(at::Tag::dynamic_output_shape)) return false;
  const std::string& name = op.schema().name();
  if (name != "aten::index" && name != "aten::_unsafe_index") return true;
  bool has_mask = false;
  for_tensors(arguments[1], [&](const at::Tensor& index) {
    has_mask |= index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
  });
  return has_mask;
}

std::string name_of(const c10::OperatorHandle& op) { return c10::toString(op.operator_name()); }

template <typename Work>
void guarded(TapeRecorder& recorder, const Work& work) {
  if (!recorder.refusal().empty()) return;
  try {
    work();
  } catch (const Refusal& refusal) {
    recorder.refuse(refusal.reason);
  } catch (const c10::Error& failure) {
    recorder.refuse(failure.what_without_backtrace());
  } catch (const std::exception& failure) {
    recorder.refuse(failure.what());
  }
}

}  // namespace

void TapeRecorder::refuse(const std::string& reason) {
  if (!refusal_.empty()) return;
  refusal_ = reason.empty() ? "unknown" : reason;
  tape_ = {};
  views_.clear();
  known_.clear();
}

int TapeRecorder::add_buffer(const at::Tensor& tensor, TapeBuffer buffer, std::ptrdiff_t begin) {
  const int index = static_cast<int>(tape_.buffers.size());
  const c10::Storage& storage = tensor.storage();
  buffer.bytes = storage.nbytes() - static_cast<std::size_t>(begin);
  buffer.storage =
      buffer.origin == TapeBuffer::Origin::kFixed ? storage : empty_storage(buffer.bytes);
  known_.emplace(storage.unsafeGetStorageImpl(), Known{index, begin, storage.getWeakStorageImpl()});
  tape_.buffers.push_back(std::move(buffer));
  views_.emplace_back();
  return index;
}

void TapeRecorder::add_fixed(const at::Tensor& tensor) {
  guarded(*this, [&] {
    if (!tensor.defined() || !tensor.has_storage() || find(tensor) != nullptr) return;
    add_buffer(tensor, {.origin = TapeBuffer::Origin::kFixed, .storage = {}}, 0);
  });
}

void TapeRecorder::add_input(const at::Tensor& tensor) {
  guarded(*this, [&] {
    if (!is_plain(tensor)) throw Refusal{"an input is no plain tensor"};
    if (find(tensor) != nullptr) throw Refusal{"two inputs share memory"};
    const auto begin = static_cast<std::ptrdiff_t>(tensor.storage_offset() * tensor.itemsize());
    std::size_t input = 0;
    for (const std::vector<Port>& inputs : tape_.inputs) input += inputs.size();
    const int buffer = add_buffer(
        tensor,
        {.origin = TapeBuffer::Origin::kInput, .storage = {}, .input = static_cast<int>(input)},
        begin);
    tape_.inputs[phase_].push_back({buffer, view_of(tensor)});
  });
}

void TapeRecorder::begin_phase() {
  tape_.begins.at(++phase_) = static_cast<int>(tape_.steps.size());
}

Tape TapeRecorder::take() {
  while (phase_ + 1 < kNumPhases) begin_phase();
  return std::move(tape_);
}

void TapeRecorder::add_site(int site, const at::Tensor& gradient) {
  guarded(*this, [&] {
    used_.clear();
    note_use(gradient);
    TapeStep step;
    step.site = site;
    step.gradient = view_of(gradient);
    add_step(std::move(step));
  });
}

void TapeRecorder::add_output(const at::Tensor& tensor) {
  guarded(*this, [&] {
    if (!tensor.defined()) {
      tape_.outputs[phase_].emplace_back();
      return;
    }
    at::Tensor view = view_of(tensor);
    const int buffer = find(tensor)->buffer;
    tape_.buffers[buffer].is_output = true;
    // What a forward kept may be what the backward gives.
    int& last = tape_.buffers[buffer].last_use;
    last = std::max(last, static_cast<int>(tape_.steps.size()) - 1);
    const bool is_late = phase_ > 0 && std::cmp_equal(tape_.steps.size(), tape_.begins[phase_]);
    if (is_late && tape_.buffers[buffer].origin == TapeBuffer::Origin::kMade) {
      throw Refusal{"a backward without operators"};
    }
    tape_.outputs[phase_].push_back({buffer, std::move(view)});
  });
}

const TapeRecorder::Known* TapeRecorder::find(const at::Tensor& tensor) const {
  const auto found = known_.find(tensor.storage().unsafeGetStorageImpl());
  return found == known_.end() ? nullptr : &found->second;
}

at::Tensor TapeRecorder::view_of(const at::Tensor& tensor) {
  if (!is_plain(tensor))
    throw Refusal{"a tensor is no plain one: sparse, conjugated or of a class of its own"};
  const Known* known = find(tensor);
  if (known == nullptr) {
    // A number that an operator was given: torch makes a tensor of it.
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
    throw Refusal{"a tensor comes from outside of what was listened to"};
  }
  const auto itemsize = static_cast<std::ptrdiff_t>(tensor.itemsize());
  const std::ptrdiff_t offset = tensor.storage_offset() * itemsize - known->begin;
  if (offset < 0 || offset % itemsize != 0) throw Refusal{"a view begins before its input"};
  std::vector<at::Tensor>& views = views_[known->buffer];
  for (const at::Tensor& view : views) {
    if (is_same_view(view, tensor, offset / itemsize)) return view;
  }
  views.push_back(make_view(tape_.buffers[known->buffer].storage, tensor, offset / itemsize));
  return views.back();
}

void TapeRecorder::note_use(const at::Tensor& tensor) {
  if (const Known* known = find(tensor)) used_.push_back(known->buffer);
}

void TapeRecorder::add_step(TapeStep step) {
  const int index = static_cast<int>(tape_.steps.size());
  for (const int buffer : used_) tape_.buffers[buffer].last_use = index;
  for (const int buffer : step.results) {
    if (buffer >= 0) tape_.buffers[buffer].made_by = tape_.buffers[buffer].last_use = index;
  }
  tape_.steps.push_back(std::move(step));
}

c10::IValue TapeRecorder::stand_in(const c10::IValue& value) {
  if (value.isGenerator() || value.isStorage() || value.isObject()) {
    throw Refusal{"takes a " + value.tagKind()};
  }
  if (value.isTensor()) {
    return value.toTensor().defined() ? c10::IValue(view_of(value.toTensor())) : value;
  }
  if (!holds_tensors(value)) return value;
  const auto list = value.toList();
  c10::impl::GenericList views(list.elementType());
  for (const c10::IValue& item : value.toListRef()) views.push_back(stand_in(item));
  return {std::move(views)};
}

void TapeRecorder::note_writes(const c10::OperatorHandle& op,
                               c10::ArrayRef<c10::IValue> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    for_tensors(arguments[i], [&](const at::Tensor& tensor) {
      const Known* known = find(tensor);
      if (known == nullptr || tape_.buffers[known->buffer].origin != TapeBuffer::Origin::kMade) {
        throw Refusal{"writes to what it was given"};
      }
      written_.push_back(view_of(tensor));
    });
    writes_ = true;
  }
}

void TapeRecorder::before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  guarded(*this, [&] {
    const Cause cause = cause_();
    step_ = TapeStep();
    step_.op = op;
    step_.grad_mode = at::GradMode::is_enabled();
    step_.origin = cause.index;
    step_.is_seeded = cause.is_seeded;
    used_.clear();
    written_.clear();
    writes_ = false;
    try {
      if (has_open_shape(op, arguments)) throw Refusal{"has shapes that depend on data"};
      if (op.hasTag(at::Tag::nondeterministic_seeded) && !cause.is_seeded) {
        throw Refusal{"draws random numbers where no stream is"};
      }
      for (const c10::IValue& argument : arguments) {
        for_tensors(argument, [&](const at::Tensor& tensor) {
          if (!is_plain(tensor)) throw Refusal{"takes a tensor that is no plain one"};
          note_use(tensor);
        });
        step_.arguments.push_back(stand_in(argument));
      }
      note_writes(op, arguments);
    } catch (const Refusal& refusal) {
      throw Refusal{name_of(op) + ": " + refusal.reason};
    }
  });
}

bool TapeRecorder::is_written(const at::Tensor& view) const {
  return std::any_of(written_.begin(), written_.end(),
                     [&](const at::Tensor& written) { return written.is_same(view); });
}

/// A result in memory that is known is a view, or an argument that was written to.
void TapeRecorder::note_results(c10::ArrayRef<c10::IValue> results) {
  bool makes = false, has_views = false;
  for (const c10::IValue& result : results) {
    if (!result.isTensor() && !result.isTensorList()) throw Refusal{"gives a " + result.tagKind()};
    for_tensors(result, [&](const at::Tensor& tensor) {
      if (!is_plain(tensor)) throw Refusal{"gives a tensor that is no plain one"};
      if (find(tensor) != nullptr) {
        has_views = true;
        step_.results.push_back(-1);
        if (writes_ && !is_written(view_of(tensor))) throw Refusal{"changes what a tensor is"};
        return;
      }
      step_.results.push_back(add_buffer(tensor, TapeBuffer(), 0));
      step_.made.push_back(view_of(tensor));
      makes = true;
    });
    if (result.isTensor() && !result.toTensor().defined()) step_.results.push_back(-1);
  }
  if (makes && (has_views || writes_)) throw Refusal{"gives new memory and old"};
  if (writes_ || makes || results.empty()) add_step(std::move(step_));
}

void TapeRecorder::after(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> results) {
  guarded(*this, [&] {
    try {
      note_results(results);
    } catch (const Refusal& refusal) {
      throw Refusal{name_of(op) + ": " + refusal.reason};
    }
  });
}

}  // namespace trireme::capture
