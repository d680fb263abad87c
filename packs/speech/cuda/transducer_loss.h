#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "packs/speech/cuda/transducer_lattices.h"
#include "trireme/kernels/half.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::speech::cuda {

/// `TransducerTargets` (kernels/loss.h) in memory of a GPU. Labels are not checked: as there,
/// they are in [0, vocabulary) and not the blank.
struct DeviceTargets {
  const std::int32_t* labels = nullptr;  ///< [B, max_labels]
  std::int64_t vocabulary = 0;           ///< V
  std::int64_t blank = 0;
};

/// The loss of kernels/loss.h for GPUs: the same formulas, layouts and orders; the same bits but
/// for the logarithm of a row's sum, whose last bit in f64 may be another than the host's.
///
/// Arrays      memory of the stream's device; the gradient may be that of the logits.
/// workspace   transducer_workspace_bytes(lattices, targets), aligned to 16: written by the
///             forward, used up by the backward.
/// Errors      kInvalidArgument for a blank that is not in [0, V) and a workspace that is too
///             small; kUnavailable without CUDA, kIo where a launch fails.
/// Blocking    no: work is put on the stream.
/// Cost        reads the logits three times, writes the gradient once. Alpha and beta go by
///             diagonals, one block of threads for each sample.
/// State       Compiled, its passes tested on the host; it has not run on a GPU.
void transducer_loss(const DeviceLattices& lattices, const DeviceTargets& targets,
                     const float* logits, std::span<std::byte> workspace, float* loss,
                     CUstream_st* stream);
void transducer_loss(const DeviceLattices& lattices, const DeviceTargets& targets,
                     const kernels::Bf16* logits, std::span<std::byte> workspace, float* loss,
                     CUstream_st* stream);

/// The gradient, after a forward with the same logits and workspace. Rows of padding become 0.
void transducer_loss_backward(const DeviceLattices& lattices, const DeviceTargets& targets,
                              const float* logits, std::span<std::byte> workspace,
                              const float* loss_gradient, float* gradient, CUstream_st* stream);
void transducer_loss_backward(const DeviceLattices& lattices, const DeviceTargets& targets,
                              const kernels::Bf16* logits, std::span<std::byte> workspace,
                              const float* loss_gradient, kernels::Bf16* gradient,
                              CUstream_st* stream);

/// 20 bytes for each of (T + U) x (U + 1) cells of a sample, of the longest; 64 bytes for each
/// 1,024 logits.
std::int64_t transducer_workspace_bytes(const DeviceLattices& lattices,
                                        const DeviceTargets& targets);

}  // namespace trireme::speech::cuda
