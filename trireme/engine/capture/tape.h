#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "trireme/engine/capture/memory_layout.h"

namespace trireme::capture {

/// Memory that captured calls read and write. Its storage stands for that of a run: it has memory only while a replay
/// runs.
struct TapeBuffer {
  enum class Origin : std::uint8_t {
    kFixed,  ///< The model's: its storage is the real one.
    kInput,  ///< Of a run.
    kMade,   ///< By a call.
  };
  Origin origin = Origin::kMade;
  c10::Storage storage;
  std::size_t bytes = 0;
  int input = -1;          ///< Position among the inputs of all phases, those of the forward first.
  bool is_output = false;  ///< What leaves the replay lies in it.
  bool is_written =
      false;  ///< By the call that makes it, into memory that is there; else the call brings memory.
  int made_by = -1;  ///< Index in Tape::steps.
  int last_use = -1;
};

/// A call below autograd, or a gradient that leaves at a parameter.
struct TapeStep {
  std::optional<c10::OperatorHandle> op;  ///< None: a gradient.
  std::vector<c10::IValue> arguments;     ///< Tensors are views of buffers' storages.
  std::vector<int>
      results;  ///< Buffers whose memory the results bring; -1 where there is none to take.
  std::vector<at::Tensor> made;  ///< Views of those buffers, as the call made them.
  bool grad_mode = false;
  int origin = -1;         ///< What brought it about (Cause::index).
  bool is_seeded = false;  ///< Cause::is_seeded.
  int site = -1;
  at::Tensor gradient;
};

/// A view of a buffer that enters or leaves a run.
struct Port {
  int buffer = -1;  ///< None: undefined.
  at::Tensor view;
};

/// The calls that a forward and its backward make, in order. A backward in two parts has two phases, one in one part the first
/// of them.
struct Tape {
  std::vector<TapeBuffer> buffers;
  std::vector<TapeStep> steps;
  PhaseBegins begins = {};
  std::array<std::vector<Port>, kNumPhases> inputs, outputs;
};

}  // namespace trireme::capture
