#include "packs/vision/cuda/boxes.h"
#include "packs/vision/cuda/boxes_passes.h"
#include "packs/vision/cuda/matching.h"
#include "packs/vision/cuda/matching_passes.h"
#include "packs/vision/cuda/nms.h"
#include "packs/vision/cuda/nms_passes.h"
#include "packs/vision/cuda/roi_align.h"
#include "packs/vision/cuda/roi_align_passes.h"
#include "packs/vision/cuda/selection.h"
#include "packs/vision/cuda/selection_passes.h"
#include "trireme/kernels/cuda/launch.cuh"

namespace trireme::vision::cuda {

using kernels::cuda::internal::OnStream;

void roi_align(const RoiAlignSettings& options, const FeatureShape& shape, const float* features,
               const float* regions, std::int64_t num_regions, float* out, CUstream_st* stream) {
  internal::roi_align_passes(options, shape, features, regions, num_regions, out,
                             OnStream{"roi_align", stream});
}

void roi_align_backward(const RoiAlignSettings& options, const FeatureShape& shape,
                        const float* gradient_out, const float* regions, std::int64_t num_regions,
                        float* gradient_features, std::span<std::byte> workspace,
                        CUstream_st* stream) {
  internal::roi_align_backward_passes(options, shape, gradient_out, regions, num_regions,
                                      gradient_features, workspace,
                                      OnStream{"roi_align_backward", stream});
}

std::int64_t roi_align_workspace_bytes(std::int64_t num_regions) {
  return internal::RoiSpace(internal::Cutter(), num_regions).bytes;
}

void fixed_nms(const NmsCandidates& candidates, double threshold, const NmsKept& kept,
               std::span<std::byte> workspace, CUstream_st* stream) {
  internal::fixed_nms_passes(candidates, threshold, kept, workspace, OnStream{"fixed_nms", stream});
}

std::int64_t fixed_nms_workspace_bytes(std::int64_t n) {
  return internal::NmsSpace(internal::Cutter(), n).bytes;
}

void box_overlaps(const float* a, std::int64_t num_a, const float* b, std::int64_t num_b,
                  float* overlaps, CUstream_st* stream) {
  internal::box_overlaps_passes(a, num_a, b, num_b, overlaps, OnStream{"box_overlaps", stream});
}

void encode_boxes(const BoxCoding& coding, const float* boxes, const float* anchors, std::int64_t n,
                  float* codes, CUstream_st* stream) {
  internal::encode_boxes_passes(coding, boxes, anchors, n, codes, OnStream{"encode_boxes", stream});
}

void decode_boxes(const BoxCoding& coding, const float* codes, const float* anchors, std::int64_t n,
                  float* boxes, CUstream_st* stream) {
  internal::decode_boxes_passes(coding, codes, anchors, n, boxes, OnStream{"decode_boxes", stream});
}

void match_anchors(const MatchOptions& options, const DeviceOverlaps& overlaps,
                   std::int64_t* matches, std::span<std::byte> workspace, CUstream_st* stream) {
  internal::match_anchors_passes(options, overlaps, matches, workspace,
                                 OnStream{"match_anchors", stream});
}

void match_ssd(float threshold, const DeviceOverlaps& overlaps, std::int64_t* matches,
               std::span<std::byte> workspace, CUstream_st* stream) {
  internal::match_ssd_passes(threshold, overlaps, matches, workspace,
                             OnStream{"match_ssd", stream});
}

std::int64_t match_workspace_bytes(const DeviceOverlaps& overlaps) {
  return internal::MatchSpace(internal::Cutter(), overlaps).bytes;
}

void mine_hard_negatives(const float* losses, const std::uint8_t* is_matched, std::int64_t n,
                         double ratio, std::uint8_t* is_chosen, std::int64_t* count,
                         std::span<std::byte> workspace, CUstream_st* stream) {
  internal::mine_hard_negatives_passes(losses, is_matched, n, ratio, is_chosen, count, workspace,
                                       OnStream{"mine_hard_negatives", stream});
}

void fixed_nonzero(const std::uint8_t* values, std::int64_t n, std::int64_t* places,
                   std::int64_t num_places, std::int64_t* count, std::span<std::byte> workspace,
                   CUstream_st* stream) {
  internal::fixed_nonzero_passes(values, n, places, num_places, count, workspace,
                                 OnStream{"fixed_nonzero", stream});
}

std::int64_t selection_workspace_bytes(std::int64_t n) {
  return internal::PrefixSpace(internal::Cutter(), n).bytes;
}

void random_permutation(std::uint64_t seed, std::int64_t* order, std::int64_t n,
                        std::span<std::byte> workspace, CUstream_st* stream) {
  internal::random_permutation_passes(seed, order, n, workspace,
                                      OnStream{"random_permutation", stream});
}

std::int64_t permutation_workspace_bytes(std::int64_t n) {
  return internal::PermutationSpace(internal::Cutter(), n).bytes;
}

}  // namespace trireme::vision::cuda
