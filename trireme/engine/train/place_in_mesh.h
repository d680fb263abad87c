#pragma once

#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// Where a rank stands in the mesh of a plan.
struct PlaceInMesh {
  int position = 0;       ///< In the pipeline.
  int index = 0;          ///< Among the ranks of the position, which all have the same values.
  int num_ranks = 1;      ///< Of the position.
  int first_replica = 0;  ///< That the rank runs,
  int num_replicas = 1;   ///< and how many: neighbours.
};

/// plan   passes its check, which has a place for the rank.
PlaceInMesh place_of(const layout::Plan& plan, int rank);

}  // namespace trireme::train
