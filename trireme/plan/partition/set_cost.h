#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/partition/range_cost.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::partition {

/// What a stage does for a microbatch.
struct SetTime {
  double work_us = 0;       ///< Of its processor, copies of messages and further sites counted.
  double values_us = 0;     ///< Of the link that brings its values.
  double gradients_us = 0;  ///< Of the link that brings gradients of values that later stages use.
  double tie_us = 0;        ///< Of shared parameters.

  /// Where all are under way at once.
  double slowest_us() const { return tie_us + std::max({work_us, values_us, gradients_us}); }
};

/// Time of any set of nodes as a stage, per microbatch: `slowest_us` is what RangeCost::time_us says where the set is a range.
class SetCost {
 public:
  /// graph, profile   must outlive this.
  SetCost(const graph::Graph& graph, const profile::Profile& profile, RangeRules rules);

  /// As stage `stage`, of nodes at these positions, ascending.
  ///
  /// is_done   by position: whether the node is in the stage or in one before it.
  /// Cost      linear in the uses of what the nodes take and make.
  SetTime time(const std::vector<int>& positions, const std::vector<bool>& is_done, int stage);

 private:
  /// Of links: `host` and `network`.
  static constexpr std::size_t kNumKinds = profile::kLinkKindNames.size();

  struct Value {
    int producer = -1;  ///< Position; -1 where no node makes it.
    std::vector<int> uses;
    bool has_gradient = false;
    double send_us = 0, send_back_us = 0;  ///< Work for the message, and for its gradient's.
    std::array<double, kNumKinds> message_us{}, gradient_us{};
  };
  struct Site {
    int parameter = 0;
    bool is_owner = false;
    double fold_us = 0, tie_us = 0;
  };
  struct Node {
    double work_us = 0;
    bool takes_field = false;
    std::vector<int> inputs, made;  ///< Values, each once.
    std::vector<Site> sites;
  };

  void read_values(const graph::Graph& graph);
  void read_sites(const graph::Graph& graph);
  double slowest_link_us(std::int64_t bytes) const;
  std::size_t kind_after(int stage) const;

  const profile::Profile& profile_;
  RangeRules rules_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  int stamp_ = 0;
  std::vector<int> received_in_, used_in_;  ///< By value, by parameter: the last call that met it.
};

}  // namespace trireme::partition
