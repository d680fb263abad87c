#include "trireme/plan/parameters/parameter_map.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "trireme/error.h"
#include "trireme/plan/layout/check.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/layout/manual.h"
#include "trireme/plan/parameters/site_facts.h"

namespace trireme::parameters {
namespace {

using internal::SiteFacts;

std::int64_t rounded_up(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

/// Puts sites one after another into buckets of their (stage, kind, dtype).
class BucketFiller {
 public:
  explicit BucketFiller(std::int64_t bucket_bytes) : bucket_bytes_(bucket_bytes) {}

  void add(const SiteFacts& site) {
    Bucket& bucket = open_bucket(site);
    bucket.slots.push_back(
        {site.parameter, site.site, bucket.num_elements, site.num_elements, site.first_norm_block});
    bucket.num_elements = rounded_up(bucket.num_elements + site.num_elements,
                                     internal::alignment_elements(site.dtype));
  }

  std::vector<Bucket> take() { return std::move(buckets_); }

 private:
  Bucket& open_bucket(const SiteFacts& site) {
    const auto [entry, is_new] =
        open_.try_emplace(std::tuple(site.stage, site.kind, site.dtype), buckets_.size());
    const bool is_full = !is_new && bytes(buckets_[entry->second]) >= bucket_bytes_;
    if (is_new || is_full) {
      entry->second = buckets_.size();
      Bucket bucket;
      bucket.stage = site.stage;
      bucket.kind = site.kind;
      bucket.dtype = site.dtype;
      buckets_.push_back(std::move(bucket));
    }
    return buckets_[entry->second];
  }

  static std::int64_t bytes(const Bucket& bucket) {
    return bucket.num_elements * static_cast<std::int64_t>(size_bytes(bucket.dtype));
  }

  std::int64_t bucket_bytes_;
  std::vector<Bucket> buckets_;
  std::map<std::tuple<int, BucketKind, Dtype>, std::size_t> open_;
};

/// Where a shard may end: the edges of norm blocks, ascending.
std::vector<std::int64_t> possible_edges(const Bucket& bucket) {
  std::vector<std::int64_t> edges;
  for (const Slot& slot : bucket.slots) {
    for (std::int64_t begin = 0; begin < slot.num_elements; begin += kNormBlockElements) {
      edges.push_back(slot.offset_elements + begin);
    }
  }
  edges.push_back(bucket.num_elements);
  return edges;
}

/// Contiguous shards, each edge the possible one that is nearest to an even split.
std::vector<Shard> make_shards(const Bucket& bucket, int num_shards) {
  if (num_shards == 1) return {{0, 0, bucket.num_elements}};
  const std::vector<std::int64_t> edges = possible_edges(bucket);
  std::vector<Shard> shards;
  std::int64_t begin = 0;
  for (int rank = 0; rank < num_shards; ++rank) {
    const std::int64_t share = bucket.num_elements / num_shards;
    const std::int64_t rest = bucket.num_elements % num_shards;
    const std::int64_t ideal = share * (rank + 1) + rest * (rank + 1) / num_shards;
    auto edge = std::lower_bound(edges.begin(), edges.end(), ideal);
    if (edge != edges.begin() && ideal - *std::prev(edge) < *edge - ideal) --edge;
    const std::int64_t end = rank + 1 == num_shards ? bucket.num_elements : std::max(begin, *edge);
    shards.push_back({rank, begin, end});
    begin = end;
  }
  return shards;
}

}  // namespace

ParameterMap make_parameter_map(const graph::Graph& graph, const layout::Plan& plan,
                                const MapOptions& options) {
  if (options.bucket_bytes < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "bucket_bytes must be at least 1, got " + std::to_string(options.bucket_bytes));
  }
  const std::string graph_sha256 =
      options.graph_sha256.empty() ? internal::recorded_sha256(graph, plan) : options.graph_sha256;
  layout::check(plan, graph_sha256, graph);
  std::vector<SiteFacts> sites = internal::site_facts(graph, plan);
  // The backward goes through the nodes from the last to the first.
  std::sort(sites.begin(), sites.end(), [](const SiteFacts& a, const SiteFacts& b) {
    return std::tuple(a.stage, -a.position, a.parameter_index, a.site) <
           std::tuple(b.stage, -b.position, b.parameter_index, b.site);
  });
  BucketFiller filler(options.bucket_bytes);
  for (const SiteFacts& site : sites) filler.add(site);
  ParameterMap map{graph_sha256, layout::plan_sha256(plan), filler.take()};
  const int num_shards = layout::train_role(plan).mesh.data;
  for (Bucket& bucket : map.buckets) bucket.shards = make_shards(bucket, num_shards);
  return map;
}

}  // namespace trireme::parameters
