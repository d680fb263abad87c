#pragma once

#include <cstdint>

#include "packs/speech/cuda/transducer_lattices.h"
#include "packs/speech/kernels/joint.h"
#include "trireme/kernels/half.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::speech::cuda {

/// The joint of kernels/joint.h for GPUs: the same formulas, layouts, random bits and results,
/// bit for bit.
///
/// Arrays     memory of the stream's device.
/// Errors     kInvalidArgument for options, as there; kUnavailable without CUDA, kIo where a launch
///            fails.
/// Blocking   no: work is put on the stream.
/// Cost       writes `out` once; the backward reads dout and mask twice, once for each gradient.
/// State      Compiled, its passes tested on the host; it has not run on a GPU.
void joint(const DeviceLattices& lattices, const JointSettings& options, const float* f,
           const float* g, float* out, std::uint8_t* mask, CUstream_st* stream);
void joint(const DeviceLattices& lattices, const JointSettings& options, const kernels::Bf16* f,
           const kernels::Bf16* g, kernels::Bf16* out, std::uint8_t* mask, CUstream_st* stream);

void joint_backward(const DeviceLattices& lattices, const JointSettings& options, const float* dout,
                    const std::uint8_t* mask, float* df, float* dg, CUstream_st* stream);
void joint_backward(const DeviceLattices& lattices, const JointSettings& options,
                    const kernels::Bf16* dout, const std::uint8_t* mask, float* df, float* dg,
                    CUstream_st* stream);

}  // namespace trireme::speech::cuda
