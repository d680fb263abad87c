#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/partition/chain.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/simulate/held_batches.h"
#include "trireme/plan/simulate/rank_memory.h"
#include "trireme/plan/simulate/stage_cost.h"

namespace trireme::partition {

/// Elements that a parameter of `elements` takes in a bucket: slots begin at multiples of 64 bytes.
std::int64_t aligned_elements(std::int64_t elements, Dtype dtype);

/// What is the same for all ranges.
struct RangeRules {
  /// Of the links between stage s and s + 1; empty: all `host`.
  std::vector<profile::LinkKind> link_kinds;
  std::int64_t microbatch = 1;
  std::int64_t num_microbatches = 1;  ///< Of a replica, per step.
  std::int64_t lanes = 1;             ///< Of a replica.
  int replicas = 1;
  std::int64_t state_shards = 1;  ///< Replicas that share the optimizer's state.
  std::int64_t parameter_shards =
      1;                       ///< And values and gradients; what is whole for a while is left out.
  std::vector<int> in_flight;  ///< By stage.
  std::vector<double> slowness =
      {};  ///< By stage: times that its work takes, in the slowest replica; empty: 1.
  std::int64_t batch_bytes = 0;     ///< Samples of a microbatch.
  std::int64_t constant_bytes = 0;  ///< Buffers, constants: whatever the stage.
  simulate::MemoryOptions memory;
  bool has_passing =
      true;  ///< What passes inside a forward or backward is counted; that takes a while to find.
};

/// What DP minimises and what it limits.
enum class RangeGoal : std::uint8_t {
  kTime,    ///< Cost is time, bound is bytes.
  kMemory,  ///< Cost is bytes, bound is time.
};

/// A range of nodes as a stage, growing node by node: what simulate::stage_costs, stage_tensors and
/// rank_memory say about a plan with this stage and without copies. A value that several later
/// stages use is priced as sent once, and what passes inside one forward or backward is taken at
/// its largest (simulate::passing_bytes); the rest is exact.
///
/// A parameter is owned where its first use is; a range with later uses mirrors it: values,
/// gradients, and messages once a step. So the DP weighs keeping uses together.
///
/// Cost   of `extend`: linear in the node's arguments.
class RangeCost : public RangePricer {
 public:
  /// planned, profile   must outlive this.
  RangeCost(const graph::Graph& planned, const profile::Profile& profile, RangeRules rules,
            RangeGoal goal);

  void begin(int first) override;
  void extend() override;
  RangePrice price(int stage) const override;
  double least_cost() const override;
  double least_bound() const override;

  /// Per microbatch: the largest of its work and of what each direction of its links takes, as
  /// stage `stage`; uses elsewhere of its parameters by their part of a step.
  double time_us(int stage) const;

  std::int64_t bytes(int stage) const { return memory(stage).total(); }

  simulate::StageCost cost() const;

  /// Between the forward and the backward of a microbatch.
  std::int64_t kept_bytes() const { return sums_.kept; }

  /// By kind. `transient` is an upper bound.
  simulate::RankMemory memory(int stage) const;

  /// Values of nodes before the range that it uses, in order of their first use.
  const std::vector<graph::ValueId>& received() const { return received_; }

  /// Frozen parameters that it uses, likewise.
  const std::vector<graph::ValueId>& frozen() const { return frozen_; }

 private:
  /// Kinds of links that there are: `host` and `network`.
  static constexpr std::size_t kMaxKinds = 2;
  using ByKind = std::array<double, kMaxKinds>;

  struct Value {
    int producer = -1;  ///< Position; -1 where no node makes it.
    int last_use = -1;
    int storage = -1;
    bool has_gradient = false;
    std::int64_t bytes = 0;  ///< As a message.
    std::int64_t gradient_bytes = 0;
    ByKind message_us{};
    ByKind gradient_us{};
    double send_us = 0, send_back_us = 0;  ///< Work for the message, and for its gradient's.
  };

  /// A use site's first node.
  struct Site {
    int parameter = 0;
    bool is_owner = false;  ///< The first of the parameter.
    std::int64_t value_bytes = 0;
    std::int64_t gradient_bytes = 0;
    std::int64_t elements = 0;  ///< As they lie in a bucket.
    double fold_us = 0;
    double tie_us = 0;  ///< Messages of a mirror, by microbatch.
  };

  struct Node {
    double forward_us = 0, input_us = 0, weight_us = 0;
    std::vector<int> inputs;  ///< Distinct values made by nodes.
    std::vector<int> made;    ///< Values that it makes.
    std::vector<int> fresh;   ///< Storages that it makes.
    std::vector<int> saved;   ///< Storages made by nodes.
    std::vector<Site> sites;
    std::vector<int> frozen;  ///< Values of frozen parameters that it takes.
    std::int64_t kept_bytes = 0;
    std::int64_t passing_bytes = 0;
    simulate::SampleUse samples;
  };

  /// Memory of the range with the same storage.
  struct Piece {
    int range = 0;  ///< Stamp.
    bool is_made = false;
    bool is_saved = false;
    int num_sent = 0;                 ///< Values in it that are used after the range.
    std::int64_t bytes = 0;           ///< Made here.
    std::int64_t received_bytes = 0;  ///< Received without a gradient.
  };

  /// What the range adds up to.
  struct Sums {
    simulate::StageCost cost;
    std::int64_t kept = 0;
    std::int64_t passing = 0;
    std::int64_t plain_received = 0;  ///< Without a gradient.
    std::int64_t gradients_received = 0;
    std::int64_t largest_received = 0;
    std::int64_t largest_gradient_sent = 0;
    std::int64_t parameters = 0, gradients = 0, optimizer = 0;
    std::int64_t frozen = 0;
    ByKind values_in_us{}, gradients_in_us{};
    double tie_us = 0;
    simulate::SampleUse samples;
  };

  double slowness(int stage) const;
  void read_kinds();
  /// Place in `kinds_` of the kind between `stage` and the next one.
  std::size_t kind_after(int stage) const;
  ByKind link_us(std::int64_t bytes) const;
  double least(RangeGoal of) const;
  double slowest_link_us(std::int64_t bytes) const;
  void read_values();
  void read_nodes(const profile::Profile& profile);
  void read_sites();
  void read_boundaries();

  Piece& piece(int storage);
  void add_gradient_in(const Value& value, int sign);
  void receive(const Value& value, bool goes_on);
  void end_use(const Value& value);
  void make(const Node& node, int position);
  void save(int storage);
  void add_site(const Site& site);
  void add_frozen(graph::ValueId value);
  static std::int64_t kept_bytes(const Piece& piece);

  const graph::Graph& graph_;
  const profile::Profile& profile_;
  RangeRules rules_;
  RangeGoal goal_;
  double least_slowness_ = 1;
  std::vector<profile::LinkKind> kinds_;   ///< Without repeats; none where there is one stage.
  std::unordered_map<int, int> storages_;  ///< Place in `pieces_` by storage_id, which may be any.
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> largest_crossing_;   ///< By cut: of the values that cross it.
  std::unordered_map<int, std::int64_t> batch_;  ///< Bytes of its fields, by storage.
  int begin_ = 0, end_ = 0;
  int stamp_ = 0;  ///< Of the range; entries with others are void.
  Sums sums_;
  std::vector<graph::ValueId> received_, frozen_;
  std::vector<int> received_in_;  ///< By value: stamp of the last range that received it.
  std::vector<int> used_in_;      ///< By parameter, likewise.
  std::vector<Piece> pieces_;     ///< By storage.
};

}  // namespace trireme::partition
