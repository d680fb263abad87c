#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "trireme/engine/parameters/lane_accumulator.h"
#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::parameters {

/// Sums the fusion buffers (buckets) of one rank's stages over its replicas while the backward goes
/// on: a bucket is started as soon as it and all that were expected before it are complete, so that
/// every replica starts them in the order of the step program.
///
/// Sums that are rounded to bf16 (LaneAccumulator) travel as bf16, from copies in the group's memory.
///
/// Confined to the thread that runs the step; the sums are made on the group's.
class Reducer {
 public:
  /// sums, map, group   outlive the reducer.
  /// scattered          by bucket: whether each replica needs the sum of its shard alone.
  /// All ranks of the group make it in the same order of the group's calls.
  Reducer(LaneAccumulator& sums, const layout::ParameterMap& map, std::vector<bool> scattered,
          collectives::Group& group);

  /// Waits for sums that nobody has taken, after a failure: their memory is lent until they end.
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  void begin_step();

  /// The program's kReduce: the bucket is to be summed, after those that were expected before.
  void expect(int bucket);

  /// The bucket holds the sum of this replica's lanes.
  void on_sum(int bucket);

  /// The sum over replicas, of a bucket that was expected and is complete.
  transport::WorkPtr work(int bucket) const;

  /// That work has ended: from now on `gradients()` of the sums hold its result, of temporary buffers the shard of it.
  void take(int bucket);

 private:
  void start_complete();
  void start(int bucket);

  LaneAccumulator& sums_;
  const layout::ParameterMap& map_;
  std::vector<bool> scattered_;
  collectives::Group& group_;
  std::vector<at::Tensor>
      sent_;  ///< By bucket: bf16, of those that are rounded; temporary as their buffers are.
  std::vector<int> expected_;  ///< In the order of their starts.
  std::set<int> complete_;
  std::size_t num_started_ = 0;
  std::map<int, transport::WorkPtr> works_;
};

/// Brings together what each replica has of its shard of a bucket.
///
/// flat   values or gradients of the bucket, written.
/// mine   of this replica's shard; part of `flat`, or apart from it.
transport::WorkPtr gather_shards(const at::Tensor& mine, const at::Tensor& flat,
                                 const layout::Bucket& bucket, collectives::Group& group);

/// Waits until a work has ended, well or not, whose memory is to be given back after a failure.
void wait_for_end(transport::Work& work, const collectives::Group& group);

/// The group's next operation carries a hash of the values held here: replicas whose values differ
/// are named on all ranks, by kCorruptData (Group::attach_hash).
///
/// Cost  the values are read once, at the speed of memory.
void attach_value_hashes(const ParameterStore& store, collectives::Group& group);

/// Flat buffers in the group's own memory, where its sums need no copies. They count as memory of
/// tensors (memory_use), and end before the group.
///
/// All ranks of the group make the same buffers in the same order.
FlatMemory memory_of(collectives::Group& group);

}  // namespace trireme::parameters
