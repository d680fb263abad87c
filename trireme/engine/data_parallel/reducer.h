#pragma once

#include <map>
#include <set>
#include <vector>

#include "trireme/engine/parameters/lane_accumulator.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::data_parallel {

/// Sums the fusion buffers (buckets) of one rank's stages over its replicas while the backward goes
/// on: a bucket is started as soon as it and all before it are complete, so that every replica
/// starts them in the same order.
///
/// Confined to the thread that runs the step; the sums are made on the group's.
class Reducer {
 public:
  /// buckets   of the map, in the order of the step program's kReduce.
  /// sums, group   outlive the reducer.
  Reducer(parameters::LaneAccumulator& sums, collectives::Group& group, std::vector<int> buckets);

  void begin_step();

  /// The bucket holds the sum of this replica's lanes.
  void on_sum(int bucket);

  /// The sum over replicas, started with `on_sum`, or nothing if it never was: our invariant is
  /// broken.
  transport::WorkPtr work(int bucket) const;

 private:
  void start(int bucket);

  parameters::LaneAccumulator& sums_;
  collectives::Group& group_;
  std::vector<int> buckets_;
  std::set<int> complete_;
  std::size_t num_started_ = 0;
  std::map<int, transport::WorkPtr> works_;
};

}  // namespace trireme::data_parallel
