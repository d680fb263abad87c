#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "trireme/engine/capture/memory_layout.h"
#include "trireme/engine/capture/tape.h"

namespace trireme::capture {

/// kBackward   or the first of its parts.
/// kWeights    the second.
enum class Phase : std::uint8_t { kForward, kBackward, kWeights };

/// What a run keeps between its phases.
struct ReplayedRun {
  std::array<at::DataPtr, 3> kept;  ///< By region of the layout.
  std::vector<c10::Storage> owned;  ///< Memory that calls brought, outputs lie in, a phase has.
  std::vector<at::Tensor> inputs;   ///< Of all phases.
};

/// A call that threw.
struct FailedCall {
  int origin;  ///< TapeStep::origin
  std::exception_ptr cause;
};

/// Whether memory that no call has written yet is filled with numbers that show it.
enum class Fresh : std::uint8_t { kAsItIs, kMarked };

/// Calls what a tape holds, without autograd, on memory that is laid out beforehand.
///
/// Tensors, views and arguments are made once; a replay says where their memory is and calls. Runs may overlap: each
/// has memory of its own between its phases. Thread-safe; one replay at a time.
class Replayer {
 public:
  /// Calls `run` with torch's generator at the start of the stream of `origin`.
  using Seeded = std::function<void(int origin, const std::function<void()>& run)>;
  /// Takes the gradient that leaves at a parameter's use site; valid during the call.
  using Sites = std::function<void(int site, const at::Tensor& gradient)>;

  explicit Replayer(Tape tape);
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  /// Whether these inputs lie in memory as those that were captured.
  bool takes(Phase phase, std::span<const at::Tensor> inputs) const;

  /// inputs   that it takes.
  /// Returns  the outputs, in memory of their own or of inputs.
  /// Errors   FailedCall.
  std::vector<at::Tensor> forward(std::vector<at::Tensor> inputs, ReplayedRun& run,
                                  const Seeded& seeded, Fresh fresh = Fresh::kAsItIs);

  /// Of a backward in two parts, the first. Errors   FailedCall; what `sites` throws.
  std::vector<at::Tensor> backward(std::vector<at::Tensor> inputs, ReplayedRun& run,
                                   const Sites& sites, Fresh fresh = Fresh::kAsItIs);

  /// The second; nothing where there is one part. Errors   FailedCall; what `sites` throws.
  void weights(ReplayedRun& run, const Sites& sites, Fresh fresh = Fresh::kAsItIs);

  std::size_t num_calls() const { return calls_.size(); }

 private:
  struct Call {
    c10::OperatorHandle op;
    std::vector<c10::IValue> arguments;
    std::vector<int> results;
    std::vector<int> acquires;  ///< Buffers whose memory is allocated before it.
    std::vector<int> releases;  ///< Indices of ReplayedRun::owned, after it.
    bool grad_mode;
    int origin;
  };
  /// Calls in a row, or a gradient.
  struct Part {
    std::size_t first = 0, last = 0;  ///< Of calls_; last is one past it.
    bool is_seeded = false;
    int site = -1;
    at::Tensor gradient;
    std::vector<int> releases;  ///< Once the gradient has left.
  };
  struct Placed {
    c10::Storage storage;
    std::size_t offset;
    std::size_t region = 0;  ///< Of what is kept.
  };
  /// Memory of one phase.
  struct PhaseMemory {
    std::vector<Placed> kept, own;  ///< Where written buffers lie.
    std::vector<int> inputs;        ///< Buffers of inputs that it or a later phase uses.
    std::vector<int> acquires;      ///< Buffers that no call writes: allocated at its end.
    std::vector<int> owned;         ///< Buffers whose memory an earlier phase brought.
    std::vector<int> ends;          ///< Indices of ReplayedRun::owned, let go at its end.
    std::vector<int> used_inputs;   ///< Inputs that no later phase uses.
    std::size_t bytes = 0;
    int index = -1;  ///< Of ReplayedRun::owned: where `own` lies, until its last use.
  };

  void lay_out_memory();
  void place_blocks(const std::vector<Block>& blocks, const std::vector<int>& block_buffers);
  void add_part(TapeStep& step, int index);
  void add_input(int index);
  void add_owned(int index);
  void set_up(Phase phase, ReplayedRun& run);
  void play_phase(Phase phase, ReplayedRun& run, const Sites& sites);
  void play(const Part& part, ReplayedRun& run);
  void call(const Call& call, ReplayedRun& run);
  void acquire(const std::vector<int>& buffers, ReplayedRun& run);
  static void release(const std::vector<int>& owned, ReplayedRun& run);
  std::vector<at::Tensor> outputs_of(Phase phase, ReplayedRun& run);
  int phase_of(int step) const { return phase_at(tape_.begins, step); }

  Tape tape_;
  std::vector<int> owned_index_;  ///< By buffer; -1: not owned by runs.
  int num_owned_ = 0;
  std::vector<std::vector<int>> acquires_, releases_;  ///< By step, while it is made.
  std::array<KeptRegion, 3> regions_;
  std::array<PhaseMemory, kNumPhases> memory_;
  std::vector<Call> calls_;
  std::array<std::vector<Part>, kNumPhases> parts_;
  std::vector<c10::IValue> stack_;  ///< Of the call that runs.
  Fresh fresh_ = Fresh::kAsItIs;    ///< Of the replay that runs.
  std::mutex mutex_;                ///< Guards what buffers' storages point to, stack_ and fresh_.
};

}  // namespace trireme::capture
