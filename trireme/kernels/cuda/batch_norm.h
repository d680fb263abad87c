#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "trireme/kernels/normalization/batch_norm.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::kernels::cuda {

/// Puts on `stream` what sums `values`, memory of the device, over the ranks that share statistics.
using SumOnStream = std::function<void(std::span<double> values, CUstream_st* stream)>;

/// Batch norm with Add and ReLU of normalization/batch_norm.h for GPUs: the same formulas, layouts
/// and bits, and masks with the same bits (0 behind a row's end).
///
/// arrays      memory of the stream's device, the statistics and their count too.
/// workspace   batch_norm_workspace_bytes(shape) of the same device, aligned to 16, not set; used
///             until the work is done.
/// sum         over ranks, once in forward and once in backward; none: this rank alone.
/// Errors      kInvalidArgument as there, but the elements of several ranks are not counted: of fewer
///             than 2 the results mean nothing; a workspace that is too small; kUnavailable without CUDA, kIo where a launch fails.
/// Blocking    no: work is put on the stream.
/// Cost        x is read twice, the residual once, y and the mask written once; backward reads
///             gradient_y, x and the mask twice. 5 launches, 7 with ranks.
/// State       Compiled, its passes tested on the host; it has not run on a GPU.
void batch_norm_forward(const BatchNormOptions& options, const BatchNormShape& shape,
                        const BatchNormForward& arrays, std::span<std::byte> workspace,
                        CUstream_st* stream, const SumOnStream& sum = nullptr);
void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& arrays,
                         std::span<std::byte> workspace, CUstream_st* stream,
                         const SumOnStream& sum = nullptr);

/// An eighth of a byte for each element, more where rows are short: 144 for each channel of a
/// sample (channels first).
std::int64_t batch_norm_workspace_bytes(const BatchNormShape& shape);

}  // namespace trireme::kernels::cuda
