#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::partition {

/// How many stages a step needs at least to be so short, wherever its cuts fall.
///
/// A stage does the work w of its nodes m times. Before its first forward a microbatch has gone through the longest path of
/// nodes before it, and after its last backward a gradient goes back there: in all c, of forwards alone where backwards are
/// split. So it ends at c + m w at the earliest. Stages take in order as much as that leaves them. One that begins later
/// never has to end earlier, so taking less does not make them fewer.
///
///     F + B of 3 2 2 1, one path, m = 4, a step of 17     stage 0: 3         0 + 4 x 3 = 12
///                                                         stage 1: 2         3 + 4 x 2 = 11, with 4 it would be 19
///                                                         stage 2: 2 and 1   5 + 4 x 3 = 17
class StageBound {
 public:
  /// recorded    passes graph::check; the profile is of it.
  /// copied      nodes that stages may run themselves instead of waiting for them. They count nothing, and a cut may fall
  ///             anywhere then.
  StageBound(const graph::Graph& recorded, const profile::Profile& profile,
             const std::set<graph::NodeId>& copied);

  struct Steps {
    std::int64_t num_microbatches = 1;
    bool splits_backwards = false;
  };

  /// Stages of a step of `step_us`; more than there are nodes where none is so short.
  ///
  /// Cost   logarithmic in the nodes, for each stage.
  int least_stages(double step_us, const Steps& steps) const;

  /// Whether stages that run at these speeds, in this order, may do a step of `step_us`. Surely not, where it says no.
  ///
  /// Cost   as above.
  bool may_do(double step_us, const Steps& steps, const std::vector<double>& speeds) const;

  /// F and B of all nodes, for a microbatch.
  double work_us() const { return work_before_us_.back(); }

  /// Cuts of at most that many stages that fill them so, for the shortest step with which that works.
  ///
  /// Cost   some 40 of the above.
  std::vector<int> cuts(int num_stages, const Steps& steps) const;

 private:
  /// A stage's own speed, and the fastest one's.
  struct Speeds {
    double own = 1, most = 1;
  };

  int filled_until(int begin, double step_us, const Steps& steps, const Speeds& speeds) const;
  void read_path(const graph::Graph& recorded, const std::vector<profile::NodeTime>& times,
                 const std::set<graph::NodeId>& copied);

  std::vector<int> places_;             ///< Where stages may end, ascending.
  std::vector<double> work_before_us_;  ///< By position: F and B of the nodes before it.
  std::vector<double> forward_before_us_, path_before_us_;  ///< Of the longest path: F; F and B.
  std::vector<int> path_nodes_before_;
};

}  // namespace trireme::partition
