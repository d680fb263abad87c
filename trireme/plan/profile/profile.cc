#include "trireme/plan/profile/profile.h"

#include <algorithm>
#include <unordered_map>

#include "trireme/error.h"

// A node of a planned graph is a recorded one or a copy of one, so its cost is found by the id of
// the recorded node. Recorded ids ascend with positions: ranked, they are the positions that
// `cost_of` and `ranges` count.
//
//     recorded   0 bias, 1 add, 2 add          planned   1' = 0, 1, 0~3, 2     positions 0 1 0 2

namespace trireme::profile {
namespace {

[[noreturn]] void lacks(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "profile: " + problem);
}

graph::NodeId recorded_id(const graph::Node& node) {
  return node.copy_of >= 0 ? node.copy_of : node.id;
}

/// Position in the recorded graph of the node at each position of `planned`.
std::vector<int> recorded_positions(const Profile& profile, const graph::Graph& planned) {
  std::vector<graph::NodeId> ids;
  for (const graph::Node& node : planned.nodes) ids.push_back(recorded_id(node));
  std::vector<graph::NodeId> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (sorted.size() != profile.cost_of.size()) {
    lacks("it has costs of " + std::to_string(profile.cost_of.size()) +
          " nodes, but the graph was recorded with " + std::to_string(sorted.size()) +
          "; profile this graph");
  }
  std::vector<int> positions;
  for (const graph::NodeId id : ids) {
    const auto found = std::lower_bound(sorted.begin(), sorted.end(), id);
    positions.push_back(static_cast<int>(found - sorted.begin()));
  }
  return positions;
}

const NodeCost& cost_at(const Profile& profile, int recorded) {
  const int index = profile.cost_of[recorded];
  if (index < 0 || static_cast<std::size_t>(index) >= profile.costs.size()) {
    lacks("cost_of[" + std::to_string(recorded) + "] is " + std::to_string(index) +
          ", but it has " + std::to_string(profile.costs.size()) + " costs");
  }
  return profile.costs[index];
}

/// What a sum has to be multiplied by to become what was measured.
double factor(double measured, double summed) { return summed > 0 ? measured / summed : 1; }

void scale(const RangeTime& range, std::vector<NodeTime>& times) {
  if (range.begin < 0 || range.end > static_cast<int>(times.size())) {
    lacks("a range [" + std::to_string(range.begin) + ", " + std::to_string(range.end) +
          ") is not within the " + std::to_string(times.size()) + " nodes");
  }
  double forward = 0, backward = 0;
  for (int p = range.begin; p < range.end; ++p) {
    forward += times[p].forward_us;
    backward += times[p].backward_us();
  }
  for (int p = range.begin; p < range.end; ++p) {
    times[p].forward_us *= factor(range.forward_us, forward);
    times[p].input_us *= factor(range.backward_us, backward);
    times[p].weight_us *= factor(range.backward_us, backward);
  }
}

void lengthen(const UncapturedTimes& uncaptured, std::vector<NodeTime>& times) {
  for (NodeTime& time : times) {
    time.forward_us *= uncaptured.forward;
    time.input_us *= uncaptured.backward;
    time.weight_us *= uncaptured.backward;
  }
}

double time_of(const LinkTime& time, bool beside_compute) {
  return beside_compute ? time.beside_compute_us : time.alone_us;
}

/// Of messages of two sizes: bytes and microseconds.
struct Sized {
  std::int64_t bytes = 0;
  double us = 0;
};

/// Microseconds per further byte between two measured messages; where the larger one was not
/// slower, that of the larger one alone.
double us_per_byte(const Sized& small, const Sized& large) {
  const double us = large.us - small.us;
  if (us > 0 && large.bytes > small.bytes) {
    return us / static_cast<double>(large.bytes - small.bytes);
  }
  if (large.bytes == 0) return 0;
  return large.us / static_cast<double>(large.bytes);
}

/// Between two sizes linear, beyond the last as between the last two; below the first as there.
///
/// measured   one or more, sizes ascend. us_of: of one of them.
template <typename Measured, typename Us>
double at_size(const std::vector<Measured>& measured, std::int64_t bytes, const Us& us_of) {
  const auto sized = [&](const Measured& from) { return Sized{from.bytes, us_of(from)}; };
  const auto above = std::ranges::lower_bound(measured, bytes, {}, &Measured::bytes);
  if (above == measured.begin()) return us_of(*above);
  const Sized below = sized(*std::prev(above));
  const double further = static_cast<double>(bytes - below.bytes);
  if (above == measured.end()) {
    const Sized before = measured.size() > 1 ? sized(measured[measured.size() - 2]) : below;
    return below.us + further * us_per_byte(before, below);
  }
  const double part = further / static_cast<double>(above->bytes - below.bytes);
  return below.us + part * (us_of(*above) - below.us);
}

}  // namespace

std::vector<const NodeCost*> node_costs(const Profile& profile, const graph::Graph& planned) {
  std::vector<const NodeCost*> costs;
  for (const int recorded : recorded_positions(profile, planned)) {
    costs.push_back(&cost_at(profile, recorded));
  }
  return costs;
}

std::vector<NodeTime> node_times(const Profile& profile, const graph::Graph& planned,
                                 NodeRuns runs) {
  std::vector<NodeTime> recorded_times;
  for (int p = 0; p < static_cast<int>(profile.cost_of.size()); ++p) {
    const NodeCost& cost = cost_at(profile, p);
    recorded_times.push_back({cost.forward_us, cost.input_us, cost.weight_us});
  }
  for (const RangeTime& range : profile.ranges) scale(range, recorded_times);
  if (runs == NodeRuns::kUncaptured && profile.uncaptured) {
    lengthen(*profile.uncaptured, recorded_times);
  }
  std::vector<NodeTime> times;
  for (const int recorded : recorded_positions(profile, planned)) {
    times.push_back(recorded_times[recorded]);
  }
  return times;
}

Profile without_captures(Profile profile) {
  if (!profile.uncaptured) return profile;
  for (RangeTime& range : profile.ranges) {
    range.forward_us *= profile.uncaptured->forward;
    range.backward_us *= profile.uncaptured->backward;
  }
  profile.uncaptured.reset();
  return profile;
}

Slowdown slowdown(const Profile& profile, std::int64_t activation_bytes) {
  if (!profile.held) return {};
  const HeldTimes& held = *profile.held;
  const double part = std::clamp(static_cast<double>(activation_bytes - held.one_bytes) /
                                     static_cast<double>(held.held_bytes - held.one_bytes),
                                 0.0, 1.0);
  return {1 + part * (held.forward - 1), 1 + part * (held.backward - 1)};
}

double link_us(const Profile& profile, LinkKind kind, std::int64_t bytes, bool beside_compute) {
  const auto table = std::find_if(profile.links.begin(), profile.links.end(),
                                  [&](const LinkTable& links) { return links.kind == kind; });
  if (table == profile.links.end() || table->times.empty()) {
    lacks("it has no link times of kind '" + std::string(to_text(kind)) +
          "'; profile with ranks on such links");
  }
  return at_size(table->times, bytes,
                 [&](const LinkTime& time) { return time_of(time, beside_compute); });
}

double copy_us(const StepCosts& step, std::int64_t bytes) {
  return static_cast<double>(bytes) * step.copy_ns_per_byte / 1000;
}

double message_work_us(const StepCosts& step, std::int64_t bytes) {
  const double copy_us = profile::copy_us(step, bytes);
  if (step.messages.empty()) return copy_us;
  return copy_us + at_size(step.messages, bytes, [](const MessageWork& work) { return work.us; });
}

}  // namespace trireme::profile
