#include "trireme/engine/capture/replayer.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "trireme/engine/capture/operator_forms.h"
#include "trireme/engine/capture/views.h"
#include "trireme/error.h"

namespace trireme::capture {
namespace {

using Origin = TapeBuffer::Origin;

/// From here on, a buffer has memory of its own, from its first use to its last: it costs nothing beside what writes it, and
/// a peak is that of autograd.
constexpr std::size_t kLargeBytes = std::size_t{64} << 10;

c10::Storage allocated(std::size_t bytes) {
  c10::Allocator* allocator = c10::GetCPUAllocator();
  return {c10::Storage::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator,
          /*resizable=*/true};
}

/// Fills memory with what is not a number, or -1.
void mark(void* memory, std::size_t bytes) {
  constexpr int kNotANumber = 0xff;
  if (bytes > 0) std::memset(memory, kNotANumber, bytes);
}

template <typename Action>
void for_results(const std::vector<c10::IValue>& results, const Action& action) {
  std::size_t next = 0;
  for (const c10::IValue& result : results) {
    if (result.isTensor()) {
      action(result.toTensor(), next++);
    } else {
      for (const c10::IValue& item : result.toListRef()) action(item.toTensor(), next++);
    }
  }
}

}  // namespace

Replayer::Replayer(Tape tape) : tape_(std::move(tape)) {
  std::vector<bool> is_room;
  for (TapeStep& step : tape_.steps) is_room.push_back(write_in_place(step, tape_.buffers));
  lay_out_memory();
  std::vector<int> wanted;  // Not allocated yet.
  int phase = 0;
  for (int i = 0; std::cmp_less(i, tape_.steps.size()); ++i) {
    if (phase_of(i) != phase) memory_[phase].acquires = std::exchange(wanted, {});
    phase = phase_of(i);
    wanted.insert(wanted.end(), acquires_[i].begin(), acquires_[i].end());
    if (is_room[i]) continue;
    TapeStep& step = tape_.steps[i];
    const bool is_call = step.op.has_value();
    add_part(step, i);
    if (is_call) calls_.back().acquires = std::exchange(wanted, {});
  }
  memory_[phase].acquires = std::move(wanted);
  tape_.steps.clear();
  acquires_.clear();
  releases_.clear();
}

void Replayer::lay_out_memory() {
  std::vector<Block> blocks;
  std::vector<int> block_buffers;
  owned_index_.assign(tape_.buffers.size(), -1);
  acquires_.resize(tape_.steps.size());
  releases_.resize(tape_.steps.size());
  for (int b = 0; std::cmp_less(b, tape_.buffers.size()); ++b) {
    const TapeBuffer& buffer = tape_.buffers[b];
    if (buffer.origin == Origin::kInput) add_input(b);
    if (buffer.origin != Origin::kMade) continue;
    if (!buffer.is_written || buffer.is_output || buffer.bytes >= kLargeBytes) {
      add_owned(b);
      continue;
    }
    blocks.push_back({buffer.bytes, buffer.made_by, buffer.last_use});
    block_buffers.push_back(b);
  }
  place_blocks(blocks, block_buffers);
}

void Replayer::add_input(int index) {
  const TapeBuffer& buffer = tape_.buffers[index];
  const int last = phase_of(buffer.last_use);
  for (int p = 0; p <= last; ++p) memory_[p].inputs.push_back(index);
  memory_[last].used_inputs.push_back(buffer.input);
}

/// Memory of its own, which a run has from phase to phase.
void Replayer::add_owned(int index) {
  const TapeBuffer& buffer = tape_.buffers[index];
  const int owned = owned_index_[index] = num_owned_++;
  const int first = phase_of(buffer.made_by), last = phase_of(buffer.last_use);
  if (buffer.is_written) acquires_[buffer.made_by].push_back(index);
  for (int p = first + 1; p <= last; ++p) memory_[p].owned.push_back(index);
  if (buffer.is_output) {
    memory_[last].ends.push_back(owned);
  } else {
    releases_[buffer.last_use].push_back(owned);
  }
}

void Replayer::place_blocks(const std::vector<Block>& blocks,
                            const std::vector<int>& block_buffers) {
  const MemoryLayout layout = lay_out(blocks, tape_.begins);
  regions_ = layout.regions;
  std::array<int, kNumPhases> last_use;  // Of a phase's own memory.
  last_use.fill(-1);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const c10::Storage& storage = tape_.buffers[block_buffers[i]].storage;
    const int first = phase_of(blocks[i].first), last = phase_of(blocks[i].last);
    if (layout.offsets[i] < layout.kept_bytes) {
      std::size_t region = regions_.size() - 1;
      while (layout.offsets[i] < regions_[region].begin) --region;
      const Placed placed{storage, layout.offsets[i] - regions_[region].begin, region};
      for (int p = first; p <= last; ++p) memory_[p].kept.push_back(placed);
    } else {
      memory_[first].own.push_back({storage, layout.offsets[i] - layout.kept_bytes});
      last_use[first] = std::max(last_use[first], blocks[i].last);
    }
  }
  for (int phase = 0; phase < kNumPhases; ++phase) {
    memory_[phase].bytes = layout.phase_bytes[phase];
    memory_[phase].index = num_owned_++;
    if (last_use[phase] >= 0) releases_[last_use[phase]].push_back(memory_[phase].index);
  }
}

void Replayer::add_part(TapeStep& step, int index) {
  std::vector<Part>& parts = parts_[phase_of(index)];
  if (!step.op) {
    parts.push_back(
        {.site = step.site, .gradient = step.gradient, .releases = std::move(releases_[index])});
    return;
  }
  calls_.push_back({.op = *step.op,
                    .arguments = std::move(step.arguments),
                    .results = std::move(step.results),
                    .releases = std::move(releases_[index]),
                    .grad_mode = step.grad_mode,
                    .origin = step.origin});
  const bool goes_on = !parts.empty() && parts.back().site < 0 &&
                       parts.back().is_seeded == step.is_seeded &&
                       (!step.is_seeded || calls_[parts.back().first].origin == step.origin);
  if (!goes_on)
    parts.push_back({.first = calls_.size() - 1, .is_seeded = step.is_seeded, .gradient = {}});
  parts.back().last = calls_.size();
}

bool Replayer::takes(Phase phase, std::span<const at::Tensor> inputs) const {
  const std::vector<Port>& known = tape_.inputs[static_cast<int>(phase)];
  if (inputs.size() != known.size()) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& view = known[i].view;
    if (!inputs[i].defined() || inputs[i].layout() != at::kStrided || !inputs[i].is_cpu() ||
        inputs[i].dtype() != view.dtype() || inputs[i].sizes() != view.sizes() ||
        inputs[i].strides() != view.strides()) {
      return false;
    }
  }
  return true;
}

void Replayer::set_up(Phase phase, ReplayedRun& run) {
  const PhaseMemory& memory = memory_[static_cast<int>(phase)];
  c10::Allocator* allocator = c10::GetCPUAllocator();
  if (phase == Phase::kForward) run.owned.resize(num_owned_);
  for (std::size_t r = 0; r < regions_.size(); ++r) {
    if (regions_[r].first != static_cast<int>(phase) || regions_[r].bytes == 0) continue;
    run.kept[r] = allocator->allocate(regions_[r].bytes);
    if (fresh_ == Fresh::kMarked) mark(run.kept[r].get(), regions_[r].bytes);
  }
  std::byte* own = nullptr;
  if (memory.bytes > 0) {
    run.owned[memory.index] = allocated(memory.bytes);
    own = static_cast<std::byte*>(run.owned[memory.index].mutable_data());
  }
  if (fresh_ == Fresh::kMarked) mark(own, memory.bytes);
  for (const Placed& one : memory.kept) {
    place(one.storage, static_cast<std::byte*>(run.kept[one.region].get()) + one.offset);
  }
  for (const Placed& one : memory.own) {
    place(one.storage, own + one.offset);
  }
  for (const int b : memory.inputs) {
    const auto input = static_cast<std::size_t>(tape_.buffers[b].input);
    if (input < run.inputs.size()) {
      place(tape_.buffers[b].storage, run.inputs[input].mutable_data_ptr());
    }
  }
  for (const int b : memory.owned) {
    place(tape_.buffers[b].storage, run.owned[owned_index_[b]].mutable_data());
  }
}

void Replayer::acquire(const std::vector<int>& buffers, ReplayedRun& run) {
  for (const int b : buffers) {
    c10::Storage& storage = run.owned[owned_index_[b]];
    storage = allocated(tape_.buffers[b].bytes);
    if (fresh_ == Fresh::kMarked) mark(storage.mutable_data(), tape_.buffers[b].bytes);
    place(tape_.buffers[b].storage, storage.mutable_data());
  }
}

void Replayer::release(const std::vector<int>& owned, ReplayedRun& run) {
  for (const int index : owned) run.owned[index] = {};
}

void Replayer::call(const Call& call, ReplayedRun& run) {
  if (at::GradMode::is_enabled() != call.grad_mode) at::GradMode::set_enabled(call.grad_mode);
  acquire(call.acquires, run);
  stack_ = call.arguments;
  call.op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
  if (!call.results.empty()) {
    for_results(stack_, [&](const at::Tensor& made, std::size_t index) {
      const int b = call.results[index];
      if (b < 0) return;
      const c10::Storage& storage = made.storage();
      if (storage.nbytes() != tape_.buffers[b].bytes) {
        throw Error(ErrorKind::kInvalidArgument,
                    "gave other sizes than when it was captured: its shape depends on data; switch "
                    "capture off");
      }
      run.owned[owned_index_[b]] = storage;
      place(tape_.buffers[b].storage, storage.mutable_data());
    });
  }
  stack_.clear();
  release(call.releases, run);
}

void Replayer::play(const Part& part, ReplayedRun& run) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard plainly(c10::DispatchKey::AutocastCPU);
  const at::AutoGradMode as_before(at::GradMode::is_enabled());
  std::size_t i = part.first;
  try {
    for (; i < part.last; ++i) call(calls_[i], run);
  } catch (...) {
    stack_.clear();
    throw FailedCall{calls_[i].origin, std::current_exception()};
  }
}

std::vector<at::Tensor> Replayer::outputs_of(Phase phase, ReplayedRun& run) {
  acquire(memory_[static_cast<int>(phase)].acquires, run);
  std::vector<at::Tensor> result;
  for (const Port& port : tape_.outputs[static_cast<int>(phase)]) {
    if (port.buffer < 0) {
      result.emplace_back();
      continue;
    }
    const TapeBuffer& buffer = tape_.buffers[port.buffer];
    const std::int64_t offset = port.view.storage_offset();
    if (buffer.origin == Origin::kInput) {
      const at::Tensor& input = run.inputs[buffer.input];
      const auto begin = static_cast<std::int64_t>(input.storage_offset() * input.itemsize() /
                                                   port.view.itemsize());
      result.push_back(make_view(input.storage(), port.view, begin + offset));
    } else {
      const bool is_fixed = buffer.origin == Origin::kFixed;
      result.push_back(make_view(is_fixed ? buffer.storage : run.owned[owned_index_[port.buffer]],
                                 port.view, offset));
    }
  }
  const PhaseMemory& memory = memory_[static_cast<int>(phase)];
  release(memory.ends, run);
  for (std::size_t r = 0; r < regions_.size(); ++r) {
    if (regions_[r].last == static_cast<int>(phase)) run.kept[r].clear();
  }
  for (const int input : memory.used_inputs) {
    // What a run is given later may already be known not to be used.
    if (std::cmp_less(input, run.inputs.size())) run.inputs[input].reset();
  }
  return result;
}

void Replayer::play_phase(Phase phase, ReplayedRun& run, const Sites& sites) {
  set_up(phase, run);
  for (const Part& part : parts_[static_cast<int>(phase)]) {
    if (part.site >= 0) {
      sites(part.site, part.gradient);
      release(part.releases, run);
    } else {
      play(part, run);
    }
  }
}

std::vector<at::Tensor> Replayer::forward(std::vector<at::Tensor> inputs, ReplayedRun& run,
                                          const Seeded& seeded, Fresh fresh) {
  const std::lock_guard lock(mutex_);
  run.inputs = std::move(inputs);
  fresh_ = fresh;
  set_up(Phase::kForward, run);
  for (const Part& part : parts_[0]) {
    if (part.is_seeded) {
      seeded(calls_[part.first].origin, [&] { play(part, run); });
    } else {
      play(part, run);
    }
  }
  return outputs_of(Phase::kForward, run);
}

std::vector<at::Tensor> Replayer::backward(std::vector<at::Tensor> inputs, ReplayedRun& run,
                                           const Sites& sites, Fresh fresh) {
  const std::lock_guard lock(mutex_);
  for (at::Tensor& input : inputs) run.inputs.push_back(std::move(input));
  fresh_ = fresh;
  play_phase(Phase::kBackward, run, sites);
  return outputs_of(Phase::kBackward, run);
}

void Replayer::weights(ReplayedRun& run, const Sites& sites, Fresh fresh) {
  const std::lock_guard lock(mutex_);
  fresh_ = fresh;
  play_phase(Phase::kWeights, run, sites);
  outputs_of(Phase::kWeights, run);  // None; lets go of what the phase held.
}

}  // namespace trireme::capture
