// In place of the .cu files where there was no CUDA toolkit.

#include "trireme/base/error.h"
#include "trireme/kernels/cuda/adafactor.h"
#include "trireme/kernels/cuda/attention.h"
#include "trireme/kernels/cuda/batch_norm.h"
#include "trireme/kernels/cuda/boxes.h"
#include "trireme/kernels/cuda/components.h"
#include "trireme/kernels/cuda/matching.h"
#include "trireme/kernels/cuda/nms.h"
#include "trireme/kernels/cuda/one_shot.h"
#include "trireme/kernels/cuda/optimizer.h"
#include "trireme/kernels/cuda/roi_align.h"
#include "trireme/kernels/cuda/selection.h"
#include "trireme/kernels/cuda/sliding_window.h"
#include "trireme/kernels/cuda/transducer_greedy.h"
#include "trireme/kernels/cuda/transducer_joint.h"
#include "trireme/kernels/cuda/transducer_loss.h"

namespace trireme::kernels::cuda {
namespace {

using Bytes = std::span<std::byte>;

[[noreturn]] void refuse() {
  throw Error(
      ErrorKind::kUnavailable,
      "this program was built without CUDA; configure the build anew where nvcc is in PATH, "
      "with -DTRIREME_CUDA=ON");
}

}  // namespace

void one_shot_all_reduce(const OneShotRanks& /*ranks*/, const Reduction& /*reduction*/,
                         double /*scale*/, std::byte* /*data*/, std::int64_t /*count*/,
                         CUstream_st* /*stream*/) {
  refuse();
}

// ---- attention.h

void attention(const DeviceSequences&, const AttentionOptions&, const float*, const float*,
               const float*, float*, float*, Bytes, CUstream_st*) {
  refuse();
}
void attention_backward(const DeviceSequences&, const AttentionOptions&, const AttentionGradient&,
                        Bytes, CUstream_st*) {
  refuse();
}
std::int64_t attention_workspace_bytes(const DeviceSequences&) { refuse(); }

// ---- optimizer.h

void sgd(const SgdOptions&, bool, const float*, float*, float*, std::int64_t, CUstream_st*) {
  refuse();
}
void sgd(const SgdOptions&, bool, const double*, double*, double*, std::int64_t, CUstream_st*) {
  refuse();
}
void sgd(const SgdOptions&, bool, const float*, Bf16*, float*, std::int64_t, CUstream_st*) {
  refuse();
}
void adamw(const AdamwOptions&, std::int64_t, const float*, float*, float*, float*, std::int64_t,
           CUstream_st*) {
  refuse();
}
void adamw(const AdamwOptions&, std::int64_t, const double*, double*, double*, double*,
           std::int64_t, CUstream_st*) {
  refuse();
}
void adamw(const AdamwOptions&, std::int64_t, const float*, Bf16*, Bf16*, float*, std::int64_t,
           CUstream_st*) {
  refuse();
}
void adamw(const AdamwOptions&, std::int64_t, std::uint64_t, const Bf16*, Bf16*, Bf16*, Bf16*,
           std::int64_t, CUstream_st*) {
  refuse();
}
void lamb(const LambOptions&, std::int64_t, const float*, float*, float*, float*, std::int64_t,
          Bytes, CUstream_st*) {
  refuse();
}
void lamb(const LambOptions&, std::int64_t, const float*, Bf16*, Bf16*, float*, std::int64_t, Bytes,
          CUstream_st*) {
  refuse();
}
void lars(const LarsOptions&, const float*, float*, float*, std::int64_t, Bytes, CUstream_st*) {
  refuse();
}
void lars(const LarsOptions&, const float*, Bf16*, float*, std::int64_t, Bytes, CUstream_st*) {
  refuse();
}
void novograd(const NovogradOptions&, std::int64_t, const float*, double*, float*, float*,
              std::int64_t, Bytes, CUstream_st*) {
  refuse();
}
void novograd(const NovogradOptions&, std::int64_t, const float*, double*, Bf16*, float*,
              std::int64_t, Bytes, CUstream_st*) {
  refuse();
}
std::int64_t layerwise_workspace_bytes(std::int64_t) { refuse(); }

// ---- adafactor.h

void adafactor(const AdafactorOptions&, std::int64_t, const AdafactorShape&, const float*, float*,
               float*, float*, float*, Bytes, CUstream_st*) {
  refuse();
}
void adafactor(const AdafactorOptions&, std::int64_t, const AdafactorShape&, const float*, float*,
               float*, Bf16*, float*, Bytes, CUstream_st*) {
  refuse();
}
void adafactor(const AdafactorOptions&, std::int64_t, const float*, float*, float*, float*,
               std::int64_t, Bytes, CUstream_st*) {
  refuse();
}
void adafactor(const AdafactorOptions&, std::int64_t, const float*, float*, Bf16*, float*,
               std::int64_t, Bytes, CUstream_st*) {
  refuse();
}
std::int64_t adafactor_workspace_bytes(const AdafactorShape&) { refuse(); }
std::int64_t adafactor_workspace_bytes(std::int64_t) { refuse(); }

// ---- batch_norm.h

void batch_norm_forward(const BatchNormOptions&, const BatchNormShape&, const BatchNormForward&,
                        Bytes, CUstream_st*, const SumOnStream&) {
  refuse();
}
void batch_norm_backward(const BatchNormShape&, const BatchNormBackward&, Bytes, CUstream_st*,
                         const SumOnStream&) {
  refuse();
}
std::int64_t batch_norm_workspace_bytes(const BatchNormShape&) { refuse(); }

// ---- nms.h, roi_align.h

void fixed_nms(const NmsCandidates&, double, const NmsKept&, Bytes, CUstream_st*) { refuse(); }
std::int64_t fixed_nms_workspace_bytes(std::int64_t) { refuse(); }
void roi_align(const RoiAlignOptions&, const FeatureShape&, const float*, const float*,
               std::int64_t, float*, CUstream_st*) {
  refuse();
}
void roi_align_backward(const RoiAlignOptions&, const FeatureShape&, const float*, const float*,
                        std::int64_t, float*, Bytes, CUstream_st*) {
  refuse();
}
std::int64_t roi_align_workspace_bytes(std::int64_t) { refuse(); }

// ---- boxes.h, matching.h, selection.h

void box_overlaps(const float*, std::int64_t, const float*, std::int64_t, float*, CUstream_st*) {
  refuse();
}
void encode_boxes(const BoxCoding&, const float*, const float*, std::int64_t, float*,
                  CUstream_st*) {
  refuse();
}
void decode_boxes(const BoxCoding&, const float*, const float*, std::int64_t, float*,
                  CUstream_st*) {
  refuse();
}
void match_anchors(const MatchOptions&, const Overlaps&, std::int64_t*, Bytes, CUstream_st*) {
  refuse();
}
void match_ssd(float, const Overlaps&, std::int64_t*, Bytes, CUstream_st*) { refuse(); }
std::int64_t match_workspace_bytes(const Overlaps&) { refuse(); }
void mine_hard_negatives(const float*, const std::uint8_t*, std::int64_t, double, std::uint8_t*,
                         std::int64_t*, Bytes, CUstream_st*) {
  refuse();
}
void fixed_nonzero(const std::uint8_t*, std::int64_t, std::int64_t*, std::int64_t, std::int64_t*,
                   Bytes, CUstream_st*) {
  refuse();
}
std::int64_t selection_workspace_bytes(std::int64_t) { refuse(); }
void random_permutation(std::uint64_t, std::int64_t*, std::int64_t, Bytes, CUstream_st*) {
  refuse();
}
std::int64_t permutation_workspace_bytes(std::int64_t) { refuse(); }

// ---- components.h, sliding_window.h

void connected_components(const VolumeShape&, const std::uint8_t*, Connectivity,
                          const ComponentsFound&, Bytes, CUstream_st*) {
  refuse();
}
void connected_components(const VolumeShape&, const std::int32_t*, Connectivity,
                          const ComponentsFound&, Bytes, CUstream_st*) {
  refuse();
}
std::int64_t components_workspace_bytes(const VolumeShape&) { refuse(); }

void accumulate_window(const DeviceWindowWeights&, const VolumeShape&, const Voxel&, std::int64_t,
                       const float*, float*, float*, CUstream_st*) {
  refuse();
}
void average_windows(const VolumeShape&, std::int64_t, const float*, float*, CUstream_st*) {
  refuse();
}
void argmax_classes(const VolumeShape&, std::int64_t, const float*, std::uint8_t*, CUstream_st*) {
  refuse();
}

// ---- transducer_greedy.h, transducer_joint.h, transducer_loss.h

void start_greedy(const GreedyOptions&, const DeviceGreedyBatch&, CUstream_st*) { refuse(); }
void greedy_step(const GreedyOptions&, const DeviceGreedyBatch&, const DeviceScores<float>&, Bytes,
                 CUstream_st*) {
  refuse();
}
void greedy_step(const GreedyOptions&, const DeviceGreedyBatch&, const DeviceScores<Bf16>&, Bytes,
                 CUstream_st*) {
  refuse();
}
std::int64_t greedy_workspace_bytes(std::int64_t) { refuse(); }

void joint(const DeviceLattices&, const JointOptions&, const float*, const float*, float*,
           std::uint8_t*, CUstream_st*) {
  refuse();
}
void joint(const DeviceLattices&, const JointOptions&, const Bf16*, const Bf16*, Bf16*,
           std::uint8_t*, CUstream_st*) {
  refuse();
}
void joint_backward(const DeviceLattices&, const JointOptions&, const float*, const std::uint8_t*,
                    float*, float*, CUstream_st*) {
  refuse();
}
void joint_backward(const DeviceLattices&, const JointOptions&, const Bf16*, const std::uint8_t*,
                    float*, float*, CUstream_st*) {
  refuse();
}
void transducer_loss(const DeviceLattices&, const DeviceTargets&, const float*, Bytes, float*,
                     CUstream_st*) {
  refuse();
}
void transducer_loss(const DeviceLattices&, const DeviceTargets&, const Bf16*, Bytes, float*,
                     CUstream_st*) {
  refuse();
}
void transducer_loss_backward(const DeviceLattices&, const DeviceTargets&, const float*, Bytes,
                              const float*, float*, CUstream_st*) {
  refuse();
}
void transducer_loss_backward(const DeviceLattices&, const DeviceTargets&, const Bf16*, Bytes,
                              const float*, Bf16*, CUstream_st*) {
  refuse();
}
std::int64_t transducer_workspace_bytes(const DeviceLattices&, const DeviceTargets&) { refuse(); }

}  // namespace trireme::kernels::cuda
