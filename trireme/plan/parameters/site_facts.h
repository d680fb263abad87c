#pragma once

#include <string>
#include <vector>

#include "trireme/plan/parameters/parameter_map.h"

namespace trireme::parameters::internal {

/// What graph and plan say about a use site, before it has a place in a bucket.
struct SiteFacts {
  std::string parameter;
  int parameter_index = 0;
  int site = 0;
  int stage = 0;
  int position = 0;  ///< Of its first node: its gradient is complete after that node's backward.
  BucketKind kind = BucketKind::kOwner;
  Dtype dtype = Dtype::kF32;
  std::int64_t num_elements = 0;
  std::int64_t first_norm_block = 0;
};

/// Facts of all use sites, by parameter, then site. graph, plan: ones that pass their checks.
std::vector<SiteFacts> site_facts(const graph::Graph& graph, const layout::Plan& plan);

/// Hash of the graph that was recorded, as a plan names it. Where the plan copies nodes, `graph` is
/// the one with the copies, which tells nothing about the hash, and the plan's word is taken.
std::string recorded_sha256(const graph::Graph& graph, const layout::Plan& plan);

/// Elements of `dtype` in 64 bytes.
constexpr std::int64_t alignment_elements(Dtype dtype) {
  return 64 / static_cast<std::int64_t>(size_bytes(dtype));
}

constexpr std::int64_t num_norm_blocks(std::int64_t num_elements) {
  return num_elements / kNormBlockElements + (num_elements % kNormBlockElements != 0 ? 1 : 0);
}

}  // namespace trireme::parameters::internal
