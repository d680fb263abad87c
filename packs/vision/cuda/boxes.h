#pragma once

#include <cstdint>

#include "packs/vision/kernels/boxes.h"

// What CUDA calls a cudaStream_t is a pointer to one of these.
struct CUstream_st;

namespace trireme::vision::cuda {

/// Overlaps and codes of kernels/boxes.h for GPUs, in memory of the stream's device. Overlaps have
/// the same bits; codes differ by what log and exp do, 2 ulps. Boxes are not checked: what is refused
/// there gives NaN, or an overlap of 0.
///
/// Errors     kUnavailable without CUDA, kIo where a launch fails.
/// Blocking   no: work is put on the stream.
/// Cost       a thread for each overlap or box.
/// State      Compiled, its passes tested on the host; it has not run on a GPU.
void box_overlaps(const float* a, std::int64_t num_a, const float* b, std::int64_t num_b,
                  float* overlaps, CUstream_st* stream);
void encode_boxes(const BoxCoding& coding, const float* boxes, const float* anchors, std::int64_t n,
                  float* codes, CUstream_st* stream);
void decode_boxes(const BoxCoding& coding, const float* codes, const float* anchors, std::int64_t n,
                  float* boxes, CUstream_st* stream);

}  // namespace trireme::vision::cuda
