#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trireme/dtype.h"
#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::layout {

/// Norms are summed over blocks of this many elements, counted from each parameter's start.
inline constexpr std::int64_t kNormBlockElements = 16 * 1024;

/// What a bucket holds besides gradients.
enum class BucketKind : std::uint8_t {
  kOwner,   ///< Values and optimizer state: the parameter's first use site in its owner stage.
  kMirror,  ///< A copy of the values: the first use site in any other stage.
  kSite,    ///< Nothing else: further use sites within a stage.
};

/// One use site's place in a bucket. Its gradient is accumulated apart from other sites'.
struct Slot {
  std::string parameter;
  int site = 0;                      ///< Index among the parameter's use sites, in node order.
  std::int64_t offset_elements = 0;  ///< From the bucket's start; a multiple of 64 bytes.
  std::int64_t num_elements = 0;
  std::int64_t first_norm_block = 0;  ///< In the sequence of all blocks of all parameters by name.
  bool operator==(const Slot&) const = default;
};

/// Elements [begin, end) of a bucket whose optimizer state one data rank keeps, where a plan shards it. Edges are
/// those of norm blocks, and of rows: a checkpoint has state in rows of a parameter's first dimension.
struct Shard {
  int data_rank = 0;
  std::int64_t begin_elements = 0;
  std::int64_t end_elements = 0;
  bool operator==(const Shard&) const = default;
};

/// Flat memory of one stage, reduced in one piece; slots in the order the backward fills them. Where a plan shards
/// parameters, those with several use sites, which stay whole, have buckets of their own.
struct Bucket {
  int stage = 0;
  BucketKind kind = BucketKind::kOwner;
  Dtype dtype = Dtype::kF32;
  std::int64_t num_elements = 0;
  std::vector<Slot> slots;
  std::vector<Shard> shards;
  bool operator==(const Bucket&) const = default;
};

/// THE map: trainable parameter -> bucket, offset, norm blocks, shard, owner.
///
/// Every use site of every trainable parameter has one slot, in a bucket of the site's stage. Used
/// by reduction, optimizer, norms, ties and checkpoint. Plain data.
struct ParameterMap {
  std::string graph_sha256;
  std::string plan_sha256;
  std::vector<Bucket> buckets;
  bool operator==(const ParameterMap&) const = default;
};

/// By bucket: whether a replica needs the sum of no more than its shard. Not of parameters with several use sites, which are
/// summed as wholes.
std::vector<bool> scattered_buckets(const ParameterMap& map, const Plan& plan);

/// By bucket: whether a replica keeps no more than its shard of the values and of the gradients, and the stage's actions
/// have the whole. Those that are scattered, where the plan shards parameters.
std::vector<bool> sharded_buckets(const ParameterMap& map, const Plan& plan);

/// Elements of a parameter from one row of its first dimension to the next, or all of it where rows are not apart in memory.
std::int64_t row_elements(const graph::Value& parameter);

/// The stage that owns each parameter: has its first site, and updates it.
std::map<std::string, int> owner_stages(const ParameterMap& map);

struct ParameterMapOptions {
  /// Of the recorded graph, where it is known: computing it is most of the cost.
  std::string graph_sha256 = {};
};

/// Lays the parameters of `graph` out under `plan`. kInvalidArgument where the plan is of another
/// graph. Cost linear in nodes and parameters.
///
/// graph   the one with the plan's copies (`planned_graph`).
ParameterMap make_parameter_map(const graph::Graph& graph, const Plan& plan,
                                const ParameterMapOptions& options = {});

/// Proves that `map` lays out the parameters of `graph` under `plan`: hashes match; every use site
/// of every trainable parameter has one slot, in a bucket of its stage, kind and dtype; slots do
/// not overlap and are aligned; norm blocks are numbered by name; shards cover each bucket in rank
/// order, with edges of norm blocks and rows.
///
/// graph, plan   ones that pass their checks.
/// Errors        kInvalidArgument, naming bucket and slot. Any map is safe to pass in.
void check(const ParameterMap& map, const graph::Graph& graph, const Plan& plan);

}  // namespace trireme::layout
