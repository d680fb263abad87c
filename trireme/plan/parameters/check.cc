#include "trireme/plan/parameters/check.h"

#include <algorithm>
#include <map>

#include "trireme/error.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/layout/manual.h"
#include "trireme/plan/parameters/site_facts.h"

namespace trireme::parameters {
namespace {

using internal::SiteFacts;

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "parameter map: " + problem);
}

void expect_hash(const std::string& what, const std::string& claimed, const std::string& actual) {
  if (claimed == actual) return;
  fail("it was made for another " + what + ": it names " + claimed.substr(0, 64) +
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
    if (found == open.end()) fail(name + "there is no such use site, or it has a slot already");
    const SiteFacts& facts = *found->second;
    if (facts.stage != bucket.stage || facts.kind != bucket.kind || facts.dtype != bucket.dtype) {
      fail(name + "stage, kind or dtype of the bucket is not that of the site");
    }
    if (slot.num_elements != facts.num_elements ||
        slot.first_norm_block != facts.first_norm_block) {
      fail(name + "expected " + std::to_string(facts.num_elements) + " elements from norm block " +
           std::to_string(facts.first_norm_block) + ", got " + std::to_string(slot.num_elements) +
           " from " + std::to_string(slot.first_norm_block));
    }
    if (slot.offset_elements < end ||
        slot.offset_elements % internal::alignment_elements(bucket.dtype) != 0) {
      fail(name + "its offset " + std::to_string(slot.offset_elements) +
           " overlaps the slot before or is no multiple of 64 bytes");
    }
    if (slot.offset_elements > bucket.num_elements ||
        slot.num_elements > bucket.num_elements - slot.offset_elements) {
      fail(name + "it ends beyond the bucket");
    }
    end = slot.offset_elements + slot.num_elements;
    open.erase(found);
  }
}

/// Whether no norm block lies on both sides of `edge`.
bool is_block_edge(const Bucket& bucket, std::int64_t edge) {
  return std::none_of(bucket.slots.begin(), bucket.slots.end(), [edge](const Slot& slot) {
    const std::int64_t inside = edge - slot.offset_elements;
    return inside > 0 && inside < slot.num_elements && inside % kNormBlockElements != 0;
  });
}

void check_shards(const Bucket& bucket, const std::string& subject, int num_shards) {
  if (bucket.shards.size() != static_cast<std::size_t>(num_shards)) {
    fail(subject + "expected " + std::to_string(num_shards) + " shards, got " +
         std::to_string(bucket.shards.size()));
  }
  std::int64_t end = 0;
  for (int rank = 0; rank < num_shards; ++rank) {
    const Shard& shard = bucket.shards[rank];
    const std::string name = subject + "shard " + std::to_string(rank) + ": ";
    if (shard.data_rank != rank || shard.begin_elements != end ||
        shard.end_elements < shard.begin_elements || shard.end_elements > bucket.num_elements) {
      fail(name + "it must be of data rank " + std::to_string(rank) + ", begin at " +
           std::to_string(end) + " and end within the bucket");
    }
    if (!is_block_edge(bucket, shard.end_elements)) fail(name + "it ends within a norm block");
    end = shard.end_elements;
  }
  if (end != bucket.num_elements) fail(subject + "its shards do not cover it");
}

}  // namespace

void check(const ParameterMap& map, const graph::Graph& graph, const layout::Plan& plan) {
  expect_hash("graph", map.graph_sha256, internal::recorded_sha256(graph, plan));
  expect_hash("plan", map.plan_sha256, layout::plan_sha256(plan));
  const std::vector<SiteFacts> facts = internal::site_facts(graph, plan);
  FactsByName open;
  for (const SiteFacts& site : facts) open[{site.parameter, site.site}] = &site;
  const int num_shards = layout::train_role(plan).mesh.data;
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    const Bucket& bucket = map.buckets[b];
    const std::string subject = "bucket " + std::to_string(b) + ": ";
    if (bucket.num_elements < 0) fail(subject + "its size is negative");
    check_slots(bucket, subject, open);
    check_shards(bucket, subject, num_shards);
  }
  if (!open.empty()) {
    const auto& [parameter, site] = open.begin()->first;
    fail("parameter '" + parameter + "' site " + std::to_string(site) + " has no slot");
  }
}

}  // namespace trireme::parameters
