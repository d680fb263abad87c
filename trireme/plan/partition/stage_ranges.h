#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/range_cost.h"

namespace trireme::partition {

/// What `RangeCost` has to know of a problem.
RangeRules range_rules(const Problem& problem, const Setting& setting);

/// A use site and where it begins.
struct PlacedSite {
  int parameter = 0;  ///< Index in Graph::parameters.
  int site = 0;
  int position = 0;
  std::int64_t elements = 0;
  Dtype dtype = Dtype::kF32;
};

/// A bucket of a stage, and how much of its backward is done when it is complete.
struct RangeBucket {
  layout::Bucket bucket;  ///< Without slots and shards.
  double ready_us = 0;
};

/// Nodes [begin, end) as a stage, without copies and messages.
struct StageRange {
  double forward_us = 0, input_us = 0, weight_us = 0;
  simulate::SampleUse samples;
  std::int64_t parameters = 0, gradients = 0, optimizer = 0;
  std::int64_t kept = 0;   ///< Of a microbatch, where no stage of the plan makes copies.
  double owned = 0;        ///< Elements of parameters whose first use is here.
  double backward_us = 0;  ///< Before anything slows it down; of `ready_us` the whole.
  std::vector<graph::ValueId> received;  ///< Ascending.
  std::vector<graph::ValueId> sent;      ///< That later nodes use; ascending.
  std::vector<graph::ValueId> frozen;    ///< Parameters.
  std::vector<RangeBucket> buckets;      ///< Where there are replicas; as in the parameter map.
};

/// Ranges of a graph, each worked out once.
class StageRanges {
 public:
  /// problem, setting   must outlive this. rules: of them.
  StageRanges(const Problem& problem, const Setting& setting, const RangeRules& rules);

  /// Cost of a new one: linear in its nodes.
  const StageRange& at(int begin, int end);

  /// As graph::use_sites.
  const std::vector<PlacedSite>& sites() const { return sites_; }

  /// Indices of the sites of each parameter that has several.
  const std::vector<std::vector<int>>& shared() const { return shared_; }

  /// Position of the node that makes a value; -1 where none does.
  int producer(graph::ValueId value) const { return producers_[value]; }

  /// Position of the last node that takes a value; -1 where none does.
  int last_use(graph::ValueId value) const { return last_uses_[value]; }

  const profile::NodeTime& time(int position) const { return times_[position]; }

  /// What its node needs samples for.
  simulate::SampleUse samples(int position) const { return samples_[position]; }

 private:
  void read_uses();
  void read_sites();
  std::vector<RangeBucket> buckets(int begin, int end) const;

  const Problem& problem_;
  const graph::Graph& graph_;
  RangeCost cost_;
  std::vector<profile::NodeTime> times_;
  std::vector<simulate::SampleUse> samples_;  ///< By position.
  std::vector<int> producers_, last_uses_;
  std::vector<PlacedSite> sites_;
  std::vector<std::vector<int>> sites_at_;  ///< By position: indices of those that begin there.
  std::vector<std::vector<int>> shared_;
  std::vector<double> backward_before_us_;  ///< By position: of the nodes before it, with folds.
  std::map<std::pair<int, int>, StageRange> known_;
};

}  // namespace trireme::partition
