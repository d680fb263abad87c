#include "trireme/plan/layout/parameter_map.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/layout/plan_json.h"

namespace trireme::layout {
namespace {

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
  std::int64_t row_elements = 0;
  std::int64_t first_norm_block = 0;
  bool stays_whole = false;  ///< In a plan that shards parameters.
};

/// Elements of `dtype` in 64 bytes.
constexpr std::int64_t alignment_elements(Dtype dtype) {
  return 64 / static_cast<std::int64_t>(size_bytes(dtype));
}

constexpr std::int64_t num_norm_blocks(std::int64_t num_elements) {
  return num_elements / kNormBlockElements + (num_elements % kNormBlockElements != 0 ? 1 : 0);
}

/// The first norm block of each trainable parameter, used or not, in byte order of the names.
std::unordered_map<std::string, std::int64_t> first_norm_blocks(const graph::Graph& graph) {
  std::map<std::string, std::int64_t> elements;
  for (const graph::Parameter& parameter : graph.parameters) {
    const graph::Value& value = graph.values[parameter.value];
    if (value.requires_grad) elements[parameter.name] = graph::num_elements_at(value, 0);
  }
  std::unordered_map<std::string, std::int64_t> first;
  std::int64_t next = 0;
  for (const auto& [name, num_elements] : elements) {
    first[name] = next;
    next += num_norm_blocks(num_elements);
  }
  return first;
}

/// The stage that keeps the parameter `name`, whose first use is in stage `first`.
int owner_stage(const Plan& plan, const std::string& name, int first) {
  for (const TieOwner& owner : plan.tie_owners) {
    if (owner.parameter == name) return owner.stage;
  }
  return first;
}

/// Facts of all use sites, by parameter, then site. graph, plan: ones that pass their checks.
std::vector<SiteFacts> site_facts(const graph::Graph& graph, const Plan& plan) {
  const auto positions = graph::node_positions(graph);
  const auto norm_blocks = first_norm_blocks(graph);
  std::vector<SiteFacts> facts;
  int owner = 0;
  for (const graph::UseSite& site : graph::use_sites(graph)) {
    const graph::Parameter& parameter = graph.parameters[site.parameter];
    const graph::Value& value = graph.values[parameter.value];
    const int position = positions.at(site.nodes.front());
    const int stage = stage_of(plan, position);
    const bool is_first = facts.empty() || facts.back().parameter_index != site.parameter;
    if (is_first) owner = owner_stage(plan, parameter.name, stage);
    // Sites are in node order, so those of one stage are neighbours.
    const bool is_first_of_stage = is_first || facts.back().stage != stage;
    const BucketKind kind = !is_first_of_stage ? BucketKind::kSite
                            : stage == owner   ? BucketKind::kOwner
                                               : BucketKind::kMirror;
    facts.push_back({parameter.name, site.parameter, site.site, stage, position, kind, value.dtype,
                     graph::num_elements_at(value, 0), row_elements(value),
                     norm_blocks.at(parameter.name)});
  }
  for (std::size_t i = 1; plan.sharded_parameters && i < facts.size(); ++i) {
    if (facts[i - 1].parameter_index != facts[i].parameter_index) continue;
    facts[i - 1].stays_whole = facts[i].stays_whole = true;
  }
  return facts;
}

/// Hash of the graph that was recorded, as a plan names it. Where the plan copies nodes or has another order of them, `graph`
/// is the one after that, which tells nothing about the hash, and the plan's word is taken.
std::string recorded_sha256(const graph::Graph& graph, const Plan& plan) {
  const bool is_recorded = plan.node_order.empty() && plan.copied_nodes.empty();
  return is_recorded ? graph::graph_sha256(graph) : plan.graph_sha256;
}

std::int64_t rounded_up(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

/// Puts sites one after another into buckets of their (stage, kind, dtype, whether they stay whole).
class BucketFiller {
 public:
  explicit BucketFiller(std::int64_t bucket_bytes) : bucket_bytes_(bucket_bytes) {}

  void add(const SiteFacts& site) {
    Bucket& bucket = open_bucket(site);
    bucket.slots.push_back(
        {site.parameter, site.site, bucket.num_elements, site.num_elements, site.first_norm_block});
    bucket.num_elements =
        rounded_up(bucket.num_elements + site.num_elements, alignment_elements(site.dtype));
  }

  std::vector<Bucket> take() { return std::move(buckets_); }

 private:
  Bucket& open_bucket(const SiteFacts& site) {
    const auto [entry, is_new] = open_.try_emplace(
        std::tuple(site.stage, site.kind, site.dtype, site.stays_whole), buckets_.size());
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
  std::map<std::tuple<int, BucketKind, Dtype, bool>, std::size_t> open_;
};

/// Elements of a row by parameter.
using RowElements = std::map<std::string, std::int64_t>;

RowElements rows_of(const std::vector<SiteFacts>& sites) {
  RowElements rows;
  for (const SiteFacts& site : sites) rows[site.parameter] = site.row_elements;
  return rows;
}

/// From one place in a parameter where a shard may end to the next: the edges of norm blocks that are edges of rows.
std::int64_t edge_distance(const Slot& slot, std::int64_t row) {
  const std::int64_t rows = kNormBlockElements / std::gcd(kNormBlockElements, row);
  return rows <= slot.num_elements / row ? rows * row : slot.num_elements;
}

/// Where a shard may end, ascending.
std::vector<std::int64_t> possible_edges(const Bucket& bucket, const RowElements& rows) {
  std::vector<std::int64_t> edges;
  for (const Slot& slot : bucket.slots) {
    const std::int64_t distance = edge_distance(slot, rows.at(slot.parameter));
    for (std::int64_t begin = 0; begin < slot.num_elements; begin += distance) {
      edges.push_back(slot.offset_elements + begin);
    }
  }
  edges.push_back(bucket.num_elements);
  return edges;
}

/// Contiguous shards, each edge the possible one that is nearest to an even split.
std::vector<Shard> make_shards(const Bucket& bucket, const RowElements& rows, int num_shards) {
  if (num_shards == 1) return {{0, 0, bucket.num_elements}};
  const std::vector<std::int64_t> edges = possible_edges(bucket, rows);
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

ParameterMap make_parameter_map(const graph::Graph& graph, const Plan& plan,
                                const ParameterMapOptions& options) {
  const std::string graph_sha256 =
      options.graph_sha256.empty() ? recorded_sha256(graph, plan) : options.graph_sha256;
  check(plan, graph_sha256, graph);
  std::vector<SiteFacts> sites = site_facts(graph, plan);
  // The backward goes through the nodes from the last to the first.
  std::sort(sites.begin(), sites.end(), [](const SiteFacts& a, const SiteFacts& b) {
    return std::tuple(a.stage, -a.position, a.parameter_index, a.site) <
           std::tuple(b.stage, -b.position, b.parameter_index, b.site);
  });
  BucketFiller filler(plan.bucket_bytes);
  for (const SiteFacts& site : sites) filler.add(site);
  ParameterMap map{graph_sha256, plan_sha256(plan), filler.take()};
  const int num_shards = train_role(plan).mesh.data;
  const RowElements rows = rows_of(sites);
  for (Bucket& bucket : map.buckets) bucket.shards = make_shards(bucket, rows, num_shards);
  return map;
}

namespace {

[[noreturn]] void fail_map(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "parameter map: " + problem);
}

void expect_hash(const std::string& what, const std::string& claimed, const std::string& actual) {
  if (claimed == actual) return;
  fail_map("it was made for another " + what + ": it names " + claimed.substr(0, 64) +
           ", but this one is " + actual + "; make the map again");
}

using FactsByName = std::map<std::pair<std::string, int>, const SiteFacts*>;

/// Slots: each of a site that belongs here and has no other slot; aligned, apart, inside.
void check_slots(const Bucket& bucket, const std::string& subject, FactsByName& open) {
  std::int64_t end = 0;
  for (const Slot& slot : bucket.slots) {
    const std::string name = subject + "slot of '" + slot.parameter.substr(0, 80) + "' site " +
                             std::to_string(slot.site) + ": ";
    const auto found = open.find({slot.parameter, slot.site});
    if (found == open.end()) fail_map(name + "there is no such use site, or it has a slot already");
    const SiteFacts& facts = *found->second;
    if (facts.stage != bucket.stage || facts.kind != bucket.kind || facts.dtype != bucket.dtype) {
      fail_map(name + "stage, kind or dtype of the bucket is not that of the site");
    }
    if (slot.num_elements != facts.num_elements ||
        slot.first_norm_block != facts.first_norm_block) {
      fail_map(name + "expected " + std::to_string(facts.num_elements) +
               " elements from norm block " + std::to_string(facts.first_norm_block) + ", got " +
               std::to_string(slot.num_elements) + " from " +
               std::to_string(slot.first_norm_block));
    }
    if (slot.offset_elements < end ||
        slot.offset_elements % alignment_elements(bucket.dtype) != 0) {
      fail_map(name + "its offset " + std::to_string(slot.offset_elements) +
               " overlaps the slot before or is no multiple of 64 bytes");
    }
    if (slot.offset_elements > bucket.num_elements ||
        slot.num_elements > bucket.num_elements - slot.offset_elements) {
      fail_map(name + "it ends beyond the bucket");
    }
    end = slot.offset_elements + slot.num_elements;
    open.erase(found);
  }
}

/// Whether no norm block and no row lies on both sides of `edge`.
bool is_edge(const Bucket& bucket, const RowElements& rows, std::int64_t edge) {
  return std::ranges::none_of(bucket.slots, [&](const Slot& slot) {
    const std::int64_t inside = edge - slot.offset_elements;
    if (inside <= 0 || inside >= slot.num_elements) return false;
    return inside % kNormBlockElements != 0 || inside % rows.at(slot.parameter) != 0;
  });
}

void check_shards(const Bucket& bucket, const RowElements& rows, const std::string& subject,
                  int num_shards) {
  if (bucket.shards.size() != static_cast<std::size_t>(num_shards)) {
    fail_map(subject + "expected " + std::to_string(num_shards) + " shards, got " +
             std::to_string(bucket.shards.size()));
  }
  std::int64_t end = 0;
  for (int rank = 0; rank < num_shards; ++rank) {
    const Shard& shard = bucket.shards[rank];
    const std::string name = subject + "shard " + std::to_string(rank) + ": ";
    if (shard.data_rank != rank || shard.begin_elements != end ||
        shard.end_elements < shard.begin_elements || shard.end_elements > bucket.num_elements) {
      fail_map(name + "it must be of data rank " + std::to_string(rank) + ", begin at " +
               std::to_string(end) + " and end within the bucket");
    }
    if (!is_edge(bucket, rows, shard.end_elements)) {
      fail_map(name + "it ends within a norm block or a row");
    }
    end = shard.end_elements;
  }
  if (end != bucket.num_elements) fail_map(subject + "its shards do not cover it");
}

}  // namespace

void check(const ParameterMap& map, const graph::Graph& graph, const Plan& plan) {
  expect_hash("graph", map.graph_sha256, recorded_sha256(graph, plan));
  expect_hash("plan", map.plan_sha256, plan_sha256(plan));
  const std::vector<SiteFacts> facts = site_facts(graph, plan);
  FactsByName open;
  for (const SiteFacts& site : facts) open[{site.parameter, site.site}] = &site;
  const RowElements rows = rows_of(facts);
  const int num_shards = train_role(plan).mesh.data;
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    const Bucket& bucket = map.buckets[b];
    const std::string subject = "bucket " + std::to_string(b) + ": ";
    if (bucket.num_elements < 0) fail_map(subject + "its size is negative");
    check_slots(bucket, subject, open);
    check_shards(bucket, rows, subject, num_shards);
  }
  if (!open.empty()) {
    const auto& [parameter, site] = open.begin()->first;
    fail_map("parameter '" + parameter + "' site " + std::to_string(site) + " has no slot");
  }
}

std::int64_t row_elements(const graph::Value& parameter) {
  const std::int64_t all = graph::num_elements_at(parameter, 0);
  if (all == 0 || parameter.shape.empty()) return std::max<std::int64_t>(all, 1);
  const std::int64_t row = all / parameter.shape.front().fixed;
  return parameter.strides.front().fixed == row ? row : all;
}

std::vector<bool> scattered_buckets(const ParameterMap& map, const Plan& plan) {
  std::vector<bool> scattered(map.buckets.size());
  if (!plan.sharded_state || train_role(plan).mesh.data == 1) return scattered;
  std::set<std::string> shared;
  for (const Bucket& bucket : map.buckets) {
    for (const Slot& slot : bucket.slots) {
      if (slot.site > 0) shared.insert(slot.parameter);
    }
  }
  for (std::size_t b = 0; b < scattered.size(); ++b) {
    const Bucket& bucket = map.buckets[b];
    scattered[b] = bucket.kind == BucketKind::kOwner &&
                   std::ranges::none_of(bucket.slots, [&](const Slot& slot) {
                     return shared.contains(slot.parameter);
                   });
  }
  return scattered;
}

std::vector<bool> sharded_buckets(const ParameterMap& map, const Plan& plan) {
  if (!plan.sharded_parameters) return std::vector<bool>(map.buckets.size());
  return scattered_buckets(map, plan);
}

std::map<std::string, int> owner_stages(const ParameterMap& map) {
  std::map<std::string, int> owners;
  for (const Bucket& bucket : map.buckets) {
    if (bucket.kind != BucketKind::kOwner) continue;
    for (const Slot& slot : bucket.slots) owners[slot.parameter] = bucket.stage;
  }
  return owners;
}

}  // namespace trireme::layout
