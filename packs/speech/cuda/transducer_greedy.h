#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "packs/speech/kernels/greedy.h"
#include "trireme/kernels/half.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::speech::cuda {

/// The decoding of a batch, in memory of a GPU. Arrays are [B]; all but `num_frames` are written.
struct DeviceGreedyBatch {
  std::int64_t num_samples = 0;              ///< B
  const std::int32_t* num_frames = nullptr;  ///< Not checked: below 0 is 0.

  // What the model is asked for in the next round: `GreedyRound` (kernels/greedy.h).
  std::int32_t* frames = nullptr;
  std::int32_t* last_labels = nullptr;
  std::uint8_t* has_new_label = nullptr;
  std::uint8_t* is_done = nullptr;

  // What has been emitted so far.
  std::int32_t* labels = nullptr;        ///< [B, max_symbols]
  std::int32_t* num_labels = nullptr;    ///< Of a row that are valid; the rest is not written.
  std::int32_t* symbols_here = nullptr;  ///< At the current frame.

  std::int32_t* num_running = nullptr;  ///< [1] samples that are not done.
};

/// What the model has said in a round, in memory of a GPU. Not read where a sample is done.
template <typename T>
struct DeviceScores {
  const T* values = nullptr;    ///< [B, V] one for each label, blank among them; NaN is the least.
  std::int64_t vocabulary = 0;  ///< V
};

// Greedy decoding of kernels/greedy.h for GPUs: the same rounds and labels. A round's best label
// is the first of those with the largest score. The model is the caller's and runs on the stream;
// no round waits for the host, which looks now and then whether samples are left:
//
//     start_greedy(options, batch, stream);
//     do {
//       for (int round = 0; round < 16; ++round) {
//         ...                          // scores of batch.frames, after batch.last_labels
//         greedy_step(options, batch, scores, workspace, stream);
//       }
//       ...                            // copies *batch.num_running to the host and waits for it
//     } while (num_running > 0);
//
// Rounds after the last one change nothing but `has_new_label`, which becomes 0.
//
// workspace   greedy_workspace_bytes(B) of the stream's device, aligned to 16, not set; used until
//             the step is done.
// Errors      kInvalidArgument for options below 1, a vocabulary of less than 1 label, and a
//             workspace that is too small; kUnavailable without CUDA, kIo where a launch fails.
// Blocking    no: work is put on the stream.
// Cost        one launch each; a step reads the scores once, a block of threads for each sample.
// State       Compiled, their passes tested on the host; they have not run on a GPU.

/// Before the first round.
void start_greedy(const GreedyOptions& options, const DeviceGreedyBatch& batch,
                  CUstream_st* stream);

/// Takes the best labels of a round and moves each sample on.
void greedy_step(const GreedyOptions& options, const DeviceGreedyBatch& batch,
                 const DeviceScores<float>& scores, std::span<std::byte> workspace,
                 CUstream_st* stream);
void greedy_step(const GreedyOptions& options, const DeviceGreedyBatch& batch,
                 const DeviceScores<kernels::Bf16>& scores, std::span<std::byte> workspace,
                 CUstream_st* stream);

/// 2 KiB for each sample.
std::int64_t greedy_workspace_bytes(std::int64_t num_samples);

}  // namespace trireme::speech::cuda
