#include "trireme/plan/simulate/rank_elements.h"

#include <algorithm>
#include <map>
#include <string>

namespace trireme::simulate {
namespace {

/// Of a slot, those in a shard.
std::int64_t elements_in(const layout::Slot& slot, const layout::Shard& shard) {
  const std::int64_t begin = std::max(slot.offset_elements, shard.begin_elements);
  const std::int64_t end = std::min(slot.offset_elements + slot.num_elements, shard.end_elements);
  return std::max<std::int64_t>(0, end - begin);
}

}  // namespace

std::vector<std::vector<RankElements>> rank_elements(const layout::Plan& plan,
                                                     const layout::ParameterMap& map) {
  const std::map<std::string, int> owner_of = layout::owner_stages(map);
  const layout::Mesh& mesh = layout::train_role(plan).mesh;
  std::vector<std::vector<RankElements>> elements(mesh.data,
                                                  std::vector<RankElements>(mesh.pipeline));
  for (const layout::Bucket& bucket : map.buckets) {
    for (const layout::Slot& slot : bucket.slots) {
      const int position = layout::position_of(plan, owner_of.at(slot.parameter));
      for (int r = 0; r < mesh.data; ++r) {
        RankElements& owner = elements[r][position];
        if (bucket.kind != layout::BucketKind::kOwner) {
          owner.further_sites += slot.num_elements;
        } else {
          owner.owned +=
              plan.sharded_state ? elements_in(slot, bucket.shards[r]) : slot.num_elements;
        }
      }
    }
  }
  return elements;
}

}  // namespace trireme::simulate
