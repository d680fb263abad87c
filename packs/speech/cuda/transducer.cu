#include "packs/speech/cuda/transducer_greedy.h"
#include "packs/speech/cuda/transducer_greedy_passes.h"
#include "packs/speech/cuda/transducer_joint.h"
#include "packs/speech/cuda/transducer_joint_passes.h"
#include "packs/speech/cuda/transducer_loss.h"
#include "packs/speech/cuda/transducer_loss_passes.h"
#include "trireme/kernels/cuda/launch.cuh"

namespace trireme::speech::cuda {

using kernels::cuda::internal::OnStream;

void joint(const DeviceLattices& lattices, const JointSettings& options, const float* f,
           const float* g, float* out, std::uint8_t* mask, CUstream_st* stream) {
  internal::joint_passes(lattices, options, f, g, out, mask, OnStream{"joint", stream});
}

void joint(const DeviceLattices& lattices, const JointSettings& options, const kernels::Bf16* f,
           const kernels::Bf16* g, kernels::Bf16* out, std::uint8_t* mask, CUstream_st* stream) {
  internal::joint_passes(lattices, options, f, g, out, mask, OnStream{"joint", stream});
}

void joint_backward(const DeviceLattices& lattices, const JointSettings& options, const float* dout,
                    const std::uint8_t* mask, float* df, float* dg, CUstream_st* stream) {
  internal::joint_backward_passes(lattices, options, dout, mask, df, dg,
                                  OnStream{"joint_backward", stream});
}

void joint_backward(const DeviceLattices& lattices, const JointSettings& options,
                    const kernels::Bf16* dout, const std::uint8_t* mask, float* df, float* dg,
                    CUstream_st* stream) {
  internal::joint_backward_passes(lattices, options, dout, mask, df, dg,
                                  OnStream{"joint_backward", stream});
}

void transducer_loss(const DeviceLattices& lattices, const DeviceTargets& targets,
                     const float* logits, std::span<std::byte> workspace, float* loss,
                     CUstream_st* stream) {
  internal::transducer_loss_passes(lattices, targets, logits, workspace, loss,
                                   OnStream{"transducer_loss", stream});
}

void transducer_loss(const DeviceLattices& lattices, const DeviceTargets& targets,
                     const kernels::Bf16* logits, std::span<std::byte> workspace, float* loss,
                     CUstream_st* stream) {
  internal::transducer_loss_passes(lattices, targets, logits, workspace, loss,
                                   OnStream{"transducer_loss", stream});
}

void transducer_loss_backward(const DeviceLattices& lattices, const DeviceTargets& targets,
                              const float* logits, std::span<std::byte> workspace,
                              const float* loss_gradient, float* gradient, CUstream_st* stream) {
  internal::transducer_loss_backward_passes(lattices, targets, logits, workspace, loss_gradient,
                                            gradient, OnStream{"transducer_loss_backward", stream});
}

void transducer_loss_backward(const DeviceLattices& lattices, const DeviceTargets& targets,
                              const kernels::Bf16* logits, std::span<std::byte> workspace,
                              const float* loss_gradient, kernels::Bf16* gradient,
                              CUstream_st* stream) {
  internal::transducer_loss_backward_passes(lattices, targets, logits, workspace, loss_gradient,
                                            gradient, OnStream{"transducer_loss_backward", stream});
}

std::int64_t transducer_workspace_bytes(const DeviceLattices& lattices,
                                        const DeviceTargets& targets) {
  return internal::LossSpace(internal::Cutter(), lattices, targets).bytes;
}

void start_greedy(const GreedyOptions& options, const DeviceGreedyBatch& batch,
                  CUstream_st* stream) {
  internal::start_greedy_passes(options, batch, OnStream{"start_greedy", stream});
}

void greedy_step(const GreedyOptions& options, const DeviceGreedyBatch& batch,
                 const DeviceScores<float>& scores, std::span<std::byte> workspace,
                 CUstream_st* stream) {
  internal::greedy_step_passes(options, batch, scores, workspace, OnStream{"greedy_step", stream});
}

void greedy_step(const GreedyOptions& options, const DeviceGreedyBatch& batch,
                 const DeviceScores<kernels::Bf16>& scores, std::span<std::byte> workspace,
                 CUstream_st* stream) {
  internal::greedy_step_passes(options, batch, scores, workspace, OnStream{"greedy_step", stream});
}

std::int64_t greedy_workspace_bytes(std::int64_t num_samples) {
  return internal::GreedySpace(internal::Cutter(), num_samples).bytes;
}

}  // namespace trireme::speech::cuda
