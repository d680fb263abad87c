#include "trireme/engine/train/place_in_mesh.h"

#include <algorithm>

#include "trireme/base/check.h"

namespace trireme::train {

PlaceInMesh place_of(const layout::Plan& plan, int rank) {
  const layout::Role& role = layout::train_role(plan);
  const auto found = std::ranges::find(role.placement, rank);
  TRIREME_CHECK(found != role.placement.end(), "a rank without a place in the mesh");
  const auto index = static_cast<int>(found - role.placement.begin());
  const int position = index / role.mesh.data, replica = index % role.mesh.data;
  const int each = role.replicas_per_rank(position);
  return {position, replica / each, role.mesh.data / each, replica, each};
}

}  // namespace trireme::train
