#include "trireme/plan/schedule/check_parameters.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::schedule {
namespace {

/// A use of a trainable parameter.
struct Use {
  int parameter = 0;
  int stage = 0;
  int bucket = -1;
};

/// What travels once a step for a parameter, to each rank of the stage that takes it.
struct ParameterTrip {
  ChannelKind kind = ChannelKind::kTieGradient;
  int item = 0;
  int from = 0;
  int to = 0;
  int partner = -1;  ///< Rank at the other end, of a rank's own trips.
  auto operator<=>(const ParameterTrip&) const = default;
};

/// What graph, plan and map say of parameters.
struct Needs {
  std::map<int, Use> uses;        ///< By index in graph::use_sites.
  std::map<int, int> owners;      ///< Stage, by parameter.
  std::set<ParameterTrip> trips;  ///< Between ranks.
  std::vector<bool> owned;        ///< By bucket: it has values that are updated.
  std::vector<bool> sharded;      ///< By bucket: replicas have its values in shards.
  int num_replicas = 1;
  bool gathers = false;  ///< Replicas update shards of what is whole in all of them.
};

int owner_of(const layout::Plan& plan, const std::string& parameter, int first_stage) {
  const auto chosen = std::ranges::find(plan.tie_owners, parameter, &layout::TieOwner::parameter);
  return chosen == plan.tie_owners.end() ? first_stage : chosen->stage;
}

int stage_at(const layout::Plan& plan, int position) {
  int stage = 0;
  while (plan.stages[stage].end <= position) ++stage;
  return stage;
}

void add_uses(const graph::Graph& planned, const layout::Plan& plan,
              const layout::ParameterMap& map, Needs& needs) {
  std::map<std::pair<std::string, int>, int> bucket_of;  // By name and site.
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    for (const layout::Slot& slot : map.buckets[b].slots)
      bucket_of[{slot.parameter, slot.site}] = static_cast<int>(b);
  }
  const auto positions = graph::node_positions(planned);
  const std::vector<graph::UseSite> sites = graph::use_sites(planned);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const graph::Parameter& parameter = planned.parameters[sites[i].parameter];
    const auto found = bucket_of.find({parameter.name, sites[i].site});
    if (found == bucket_of.end()) continue;  // Frozen: the map has all others.
    const int stage = stage_at(plan, positions.at(sites[i].nodes.front()));
    needs.uses[static_cast<int>(i)] = {sites[i].parameter, stage, found->second};
    needs.owners.try_emplace(sites[i].parameter, owner_of(plan, parameter.name, stage));
  }
}

void add_trips(const layout::Plan& plan, Needs& needs) {
  std::map<std::pair<int, int>, int> first;  // Stage with a use, by parameter and position.
  for (const auto& [site, use] : needs.uses) {
    const int owner = needs.owners.at(use.parameter);
    const int position = layout::position_of(plan, use.stage);
    if (position == layout::position_of(plan, owner)) continue;
    needs.trips.insert({ChannelKind::kTieGradient, site, use.stage, owner});
    int& stage = first.try_emplace({use.parameter, position}, use.stage).first->second;
    stage = std::min(stage, use.stage);
  }
  for (const auto& [place, stage] : first) {
    const int parameter = place.first;
    needs.trips.insert({ChannelKind::kTieValue, parameter, needs.owners.at(parameter), stage});
  }
}

Needs needs_of(const graph::Graph& planned, const layout::Plan& plan,
               const layout::ParameterMap& map) {
  Needs needs{.num_replicas = layout::train_role(plan).mesh.data};
  add_uses(planned, plan, map, needs);
  add_trips(plan, needs);
  std::map<int, int> num_uses;  // By parameter.
  for (const auto& [site, use] : needs.uses) ++num_uses[use.parameter];
  const bool is_replicated = needs.num_replicas > 1;
  needs.gathers = plan.sharded_state && is_replicated;
  needs.owned.resize(map.buckets.size());
  needs.sharded.assign(map.buckets.size(), plan.sharded_parameters && is_replicated);
  std::set<int> seen;  // Parameters: values are with the first use in the owner's stage.
  for (const auto& [site, use] : needs.uses) {
    if (num_uses.at(use.parameter) > 1) needs.sharded[use.bucket] = false;
    if (use.stage == needs.owners.at(use.parameter) && seen.insert(use.parameter).second)
      needs.owned[use.bucket] = true;
  }
  return needs;
}

/// What one rank does for parameters, operation by operation.
class ParameterRules {
 public:
  ParameterRules(const StepProgram& program, const layout::Plan& plan, const Needs& needs,
                 const graph::Graph& planned, int rank)
      : program_(program),
        plan_(plan),
        role_(layout::train_role(plan)),
        needs_(needs),
        planned_(planned),
        rank_(rank) {}

  void check(int position) {
    const std::vector<int> stages = layout::stages_at(plan_, position);
    stages_ = {stages.begin(), stages.end()};
    for (const auto& [site, use] : needs_.uses) {
      if (stages_.contains(use.stage)) stage_of_[use.bucket] = use.stage;
    }
    num_ranks_ = ranks_of(*stages_.begin()).size();
    for (const ParameterTrip& trip : needs_.trips) {
      if (stages_.contains(trip.from)) add_sends(trip);
      if (stages_.contains(trip.to)) add_recv(trip);
    }
    const std::vector<Operation>& operations = program_.ranks[rank_];
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (operations[i].kind == OperationKind::kCompute && ends_gradients(operations[i].action))
        last_[operations[i].action.stage] = i;
    }
    for (at_ = 0; at_ < operations.size(); ++at_) take(operations[at_]);
    finish();
  }

 private:
  static bool ends_gradients(const Action& action) {
    return action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight;
  }

  /// Ranks at the position of a stage.
  std::set<int> ranks_of(int stage) const {
    const auto first = replicas_of(stage);
    return {first, first + role_.mesh.data};
  }

  /// Rank by replica at the position of a stage.
  std::vector<int>::const_iterator replicas_of(int stage) const {
    return role_.placement.begin() +
           std::ptrdiff_t{layout::position_of(plan_, stage)} * role_.mesh.data;
  }

  /// From the rank that runs the first replica of a taker.
  int sender_to(int taker, const ParameterTrip& trip) const {
    const auto takers = replicas_of(trip.to);
    return replicas_of(trip.from)[std::find(takers, takers + role_.mesh.data, taker) - takers];
  }

  void add_sends(ParameterTrip trip) {
    for (const int taker : ranks_of(trip.to)) {
      trip.partner = taker;
      if (sender_to(taker, trip) == rank_) sends_.insert(trip);
    }
  }

  void add_recv(ParameterTrip trip) {
    trip.partner = sender_to(rank_, trip);
    recvs_.insert(trip);
  }

  void take(const Operation& operation) {
    switch (operation.kind) {
      case OperationKind::kCompute:
        return compute(operation.action.stage);
      case OperationKind::kReduce:
        return reduce(operation);
      case OperationKind::kJoin:
        return join(operation.item);
      case OperationKind::kUnshard:
      case OperationKind::kAwait:
      case OperationKind::kReshard:
        return move_values(operation);
      case OperationKind::kSend:
      case OperationKind::kRecv:
        return message(operation);
      case OperationKind::kTieSum:
        return add_up();
      case OperationKind::kUpdate:
        is_updated_ = true;
        return;
      case OperationKind::kGather:
        return gather(operation);
      default:
        return;
    }
  }

  void compute(int stage) {
    for (const auto& [bucket, of] : stage_of_) {
      if (of == stage && needs_.sharded[bucket] && !whole_.contains(bucket))
        fail("stage " + std::to_string(stage) + " runs while " + text_of(bucket) + " is in shards");
    }
  }

  void reduce(const Operation& operation) {
    const int bucket = operation.item;
    const int stage = stage_of(bucket);
    check_group(operation);
    if (!reduced_.insert(bucket).second) fail(text_of(bucket) + " is summed twice");
    const std::vector<Operation>& operations = program_.ranks[rank_];
    const auto next =
        std::find_if(operations.begin() + static_cast<std::ptrdiff_t>(at_), operations.end(),
                     [](const Operation& later) { return later.kind == OperationKind::kCompute; });
    const auto last = last_.find(stage);
    if (last == last_.end() ||
        next - operations.begin() != static_cast<std::ptrdiff_t>(last->second))
      fail(text_of(bucket) + " is not summed with the last backward of stage " +
           std::to_string(stage));
  }

  void join(int bucket) {
    const int stage = stage_of(bucket);
    if (!reduced_.contains(bucket)) fail(text_of(bucket) + " is joined and was not summed");
    if (last_.at(stage) > at_) fail(text_of(bucket) + " is joined before its last gradients");
    joined_.insert(bucket);
  }

  void gather(const Operation& operation) {
    check_group(operation);
    if (!is_updated_) fail(text_of(operation.item) + " is gathered before the update");
    stage_of(operation.item);
    if (!gathered_.insert(operation.item).second)
      fail(text_of(operation.item) + " is gathered twice");
  }

  void move_values(const Operation& operation) {
    const int bucket = operation.item;
    stage_of(bucket);
    if (!needs_.sharded[bucket]) fail(text_of(bucket) + " is whole on all replicas");
    if (operation.kind == OperationKind::kReshard) {
      coming_.erase(bucket);
      whole_.erase(bucket);
    } else if (operation.kind == OperationKind::kUnshard) {
      check_group(operation);
      if (whole_.contains(bucket) || !coming_.insert(bucket).second)
        fail(text_of(bucket) + " is made whole twice");
    } else if (coming_.erase(bucket) == 0) {
      fail(text_of(bucket) + " is awaited and does not come");
    } else {
      whole_.insert(bucket);
    }
  }

  void message(const Operation& operation) {
    const Channel& channel = program_.channels.at(operation.channel);
    if (has_microbatch(channel.kind)) return;
    const bool sends = operation.kind == OperationKind::kSend;
    const ParameterTrip trip{channel.kind, operation.item, channel.from_stage, channel.to_stage,
                             sends ? channel.to_rank : channel.from_rank};
    if ((sends ? sends_ : recvs_).erase(trip) == 0)
      fail((sends ? "it sends " : "it takes ") + text_of(trip) + ", which nobody needs, or again");
    if (!sends) return;
    if (trip.kind == ChannelKind::kTieValue) return check_new_value(trip);
    const int bucket = needs_.uses.at(trip.item).bucket;
    if (num_ranks_ > 1 ? !joined_.contains(bucket) : last_.at(trip.from) > at_)
      fail("it sends " + text_of(trip) + " before that is complete");
  }

  void check_new_value(const ParameterTrip& trip) {
    const bool is_there = !needs_.gathers || std::ranges::any_of(gathered_, [&](int bucket) {
      return holds(bucket, trip.item);
    });
    if (!is_updated_ || !is_there) fail("it sends " + text_of(trip) + " before that is new");
  }

  /// Whether the bucket has the values of a parameter that is owned here.
  bool holds(int bucket, int parameter) const {
    return std::ranges::any_of(needs_.uses, [&](const auto& entry) {
      return entry.second.bucket == bucket && entry.second.parameter == parameter;
    });
  }

  /// Gradients of all uses of what is owned here are there.
  void add_up() {
    for (const ParameterTrip& trip : recvs_) {
      if (trip.kind == ChannelKind::kTieGradient) fail("it adds up uses without " + text_of(trip));
    }
    if (num_ranks_ == 1) return;
    for (const auto& [bucket, stage] : stage_of_) {
      if (!joined_.contains(bucket))
        fail("it adds up uses before " + text_of(bucket) + " is summed over the replicas");
    }
  }

  void finish() {
    for (const ParameterTrip& trip : sends_) fail("it never sends " + text_of(trip));
    for (const ParameterTrip& trip : recvs_) fail("it never takes " + text_of(trip));
    if (!whole_.empty()) fail(text_of(*whole_.begin()) + " stays whole");
    if (!coming_.empty()) fail(text_of(*coming_.begin()) + " is asked for and not used");
    if (num_ranks_ == 1 && !reduced_.empty()) fail("it sums over one replica");
    for (const auto& [bucket, stage] : stage_of_) {
      if (num_ranks_ > 1 && !joined_.contains(bucket))
        fail(text_of(bucket) + " is never summed over the replicas");
      const bool wants_gather = needs_.gathers && needs_.owned[bucket] && !needs_.sharded[bucket];
      if (wants_gather == gathered_.contains(bucket)) continue;
      fail(text_of(bucket) + (wants_gather ? " is never gathered" : " is gathered for nobody"));
    }
  }

  /// All ranks at this position, in the order of their replicas.
  void check_group(const Operation& operation) const {
    std::vector<int> expected;
    const auto first = replicas_of(*stages_.begin());
    std::unique_copy(first, first + role_.mesh.data, std::back_inserter(expected));
    if (program_.groups.at(operation.group).ranks != expected)
      fail(text_of(operation.item) + " is summed or gathered over others than the replicas");
  }

  int stage_of(int bucket) const {
    const auto found = stage_of_.find(bucket);
    if (found == stage_of_.end()) fail(text_of(bucket) + " is of no stage here");
    return found->second;
  }

  std::string text_of(int bucket) const { return "bucket " + std::to_string(bucket); }

  std::string text_of(const ParameterTrip& trip) const {
    const bool is_value = trip.kind == ChannelKind::kTieValue;
    const int parameter = is_value ? trip.item : needs_.uses.at(trip.item).parameter;
    return std::string(is_value ? "the value of '" : "a gradient of '") +
           planned_.parameters[parameter].name + "' from stage " + std::to_string(trip.from) +
           " to stage " + std::to_string(trip.to);
  }

  [[noreturn]] void fail(const std::string& problem) const {
    Error error(ErrorKind::kInvalidArgument,
                "step program: rank " + std::to_string(rank_) + ": " + problem);
    error.add({.rank = rank_});
    throw error;
  }

  const StepProgram& program_;
  const layout::Plan& plan_;
  const layout::Role& role_;
  const Needs& needs_;
  const graph::Graph& planned_;
  int rank_;
  std::size_t num_ranks_ = 0;  ///< At its position.
  std::set<int> stages_;
  std::map<int, int> stage_of_;      ///< By bucket of the rank.
  std::map<int, std::size_t> last_;  ///< By stage, the place of the last action with gradients.
  std::set<ParameterTrip> sends_, recvs_;                       ///< Still to come.
  std::set<int> reduced_, joined_, gathered_, coming_, whole_;  ///< Buckets.
  bool is_updated_ = false;
  std::size_t at_ = 0;
};

}  // namespace

void check_parameters(const StepProgram& program, const graph::Graph& planned,
                      const layout::Plan& plan, const layout::ParameterMap& map) {
  const Needs needs = needs_of(planned, plan, map);
  const layout::Role& role = layout::train_role(plan);
  for (int position = 0; position < role.mesh.pipeline; ++position) {
    for (const int rank : role.ranks_at(position)) {
      ParameterRules(program, plan, needs, planned, rank).check(position);
    }
  }
}

}  // namespace trireme::schedule
