#include "trireme/plan/parameters/show.h"

#include "trireme/plan/graph/table.h"
#include "trireme/plan/parameters/json.h"

namespace trireme::parameters {
namespace {

using graph::Table;
using graph::with_commas;

std::string buckets_text(const ParameterMap& map) {
  Table table({">bucket", ">stage", "kind", "dtype", ">elements", ">slots", ">shards"});
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    const Bucket& bucket = map.buckets[b];
    table.add({std::to_string(b), std::to_string(bucket.stage),
               std::string(kBucketKindNames[static_cast<std::size_t>(bucket.kind)]),
               std::string(to_text(bucket.dtype)), with_commas(bucket.num_elements),
               std::to_string(bucket.slots.size()), std::to_string(bucket.shards.size())});
  }
  return table.text();
}

std::string slots_text(const ParameterMap& map) {
  Table table({">bucket", "parameter", ">site", ">offset", ">elements", ">first norm block"});
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    for (const Slot& slot : map.buckets[b].slots) {
      table.add({std::to_string(b), slot.parameter, std::to_string(slot.site),
                 with_commas(slot.offset_elements), with_commas(slot.num_elements),
                 with_commas(slot.first_norm_block)});
    }
  }
  return "\nslots, in the order in which the backward fills them\n" + table.text();
}

}  // namespace

std::string show(const ParameterMap& map) {
  return "parameter map\n  graph " + map.graph_sha256 + "\n  plan " + map.plan_sha256 +
         "\n\nbuckets\n" + buckets_text(map) + slots_text(map);
}

}  // namespace trireme::parameters
