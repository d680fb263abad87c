#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::profile {

/// What one distinct node costs: one operator on one set of shapes, measured alone, for one
/// microbatch. Times are medians.
struct NodeCost {
  std::string key;  ///< Operator and the shapes of its tensors, for people.
  double forward_us = 0;
  double input_us = 0;             ///< Backward, gradients of activations only (I).
  double weight_us = 0;            ///< Backward, gradients of parameters only (W).
  double spread = 0;               ///< Interquartile range of the forward over its median.
  std::vector<int> saved_inputs;   ///< Indices into graph::input_values that the backward keeps.
  std::vector<int> saved_outputs;  ///< Indices into Node::outputs that the backward keeps.
  std::int64_t kept_bytes = 0;     ///< Kept for the backward beside those: masks, statistics.
  std::int64_t forward_workspace_bytes = 0;   ///< Peak of the forward beyond inputs and outputs.
  std::int64_t backward_workspace_bytes = 0;  ///< Likewise of the backward, beyond gradients.
  bool operator==(const NodeCost&) const = default;
};

/// A range of nodes that was measured as a whole, captured where stages are. The costs of its nodes are multiplied by
/// measured / summed, so that sums over ranges are the times of ranges.
struct RangeTime {
  int begin = 0;  ///< Positions in the recorded graph.
  int end = 0;
  double forward_us = 0;   ///< Measured, per microbatch.
  double backward_us = 0;  ///< Measured, per microbatch: I and W.
  bool operator==(const RangeTime&) const = default;
};

/// How much longer the same work takes where a rank holds the activations of several microbatches:
/// what it reads and writes then comes from memory and not from caches.
struct HeldTimes {
  std::int64_t one_bytes = 0;   ///< Activations of one microbatch, with which `ranges` were taken.
  std::int64_t held_bytes = 0;  ///< Of those that were held.
  double forward = 1;           ///< Time while they were held / time of one alone; at least 1.
  double backward = 1;
  bool operator==(const HeldTimes&) const = default;
};

/// How much longer the same work takes in stages that are not captured though others are: those that offload.
struct UncapturedTimes {
  double forward = 1;  ///< Time without / time with captures; at least 1.
  double backward = 1;
  bool operator==(const UncapturedTimes&) const = default;
};

/// A message of this many bytes between two ranks, one way, until the receiver has it.
struct LinkTime {
  std::int64_t bytes = 0;
  double alone_us = 0;
  double beside_compute_us = 0;  ///< While both ranks compute.
  bool operator==(const LinkTime&) const = default;
};

enum class LinkKind : std::uint8_t {
  kHost,     ///< Both ranks on one machine.
  kNetwork,  ///< Between machines.
};

inline constexpr std::array<std::string_view, 2> kLinkKindNames = {"host", "network"};

constexpr std::string_view to_text(LinkKind kind) {
  return kLinkKindNames[static_cast<std::size_t>(kind)];
}

/// A class of links. Sizes ascend.
struct LinkTable {
  LinkKind kind = LinkKind::kHost;
  std::vector<LinkTime> times;
  bool operator==(const LinkTable&) const = default;
};

/// The machine that a profile was taken on.
struct Hardware {
  std::string processor;  ///< Model name.
  int num_cores = 0;
  std::string instruction_set;  ///< Of torch's kernels: `AVX2`, `AVX512`, ...
  std::string torch_version;
  bool operator==(const Hardware&) const = default;
};

/// Time per byte of files that hold tensors for a while.
struct FileCosts {
  double write_ns_per_byte = 0;
  double read_ns_per_byte = 0;
  bool operator==(const FileCosts&) const = default;
};

/// What a message of this many bytes takes of the processor, of both ranks' threads together.
struct MessageWork {
  std::int64_t bytes = 0;
  double us = 0;
  bool operator==(const MessageWork&) const = default;
};

/// Costs per element and step of what a rank does outside stages.
struct StepCosts {
  double optimizer_ns = 0;             ///< Update of one parameter element.
  double fold_ns = 0;                  ///< Adding one gradient element to a partial sum.
  double copy_ns_per_byte = 0;         ///< Putting a boundary value into a message.
  std::optional<FileCosts> file = {};  ///< Where that was to be measured.
  double read_us =
      0;  ///< Reading the samples of a microbatch, where that takes a computing rank's core.
  std::vector<MessageWork> messages =
      {};  ///< Moving one, likewise; sizes ascend. Empty where cores are left.
  bool operator==(const StepCosts&) const = default;
};

/// Measured costs of a graph's nodes and of the links between ranks. Whoever plans reads this and
/// never a clock: the same profile gives the same plan. Plain data; file form in docs/formats.md.
struct Profile {
  std::string graph_sha256;
  std::int64_t microbatch = 0;  ///< b that all node costs are for.
  int num_busy_ranks = 1;       ///< Local ranks that measured at the same time.
  int threads = 1;              ///< That each rank computed with.
  Hardware hardware;
  std::vector<NodeCost> costs;
  std::vector<int> cost_of;  ///< By position in the recorded graph: index into `costs`.
  std::vector<RangeTime> ranges;
  std::optional<HeldTimes> held;  ///< Nothing where one microbatch fills more than caches.
  std::optional<UncapturedTimes> uncaptured;  ///< Nothing where no stage was captured.
  std::vector<LinkTable> links;
  StepCosts step;
  bool operator==(const Profile&) const = default;
};

/// A node's cost after scaling to the measured ranges.
struct NodeTime {
  double forward_us = 0;
  double input_us = 0;
  double weight_us = 0;
  double backward_us() const { return input_us + weight_us; }
};

/// How a stage's nodes are run, where the profile measured stages that are captured.
enum class NodeRuns : std::uint8_t { kCaptured, kUncaptured };

/// Times by position in `planned`: the recorded graph, or one with copies
/// (graph::copy_to_consumers), whose copied nodes cost what the node they copy does.
///
/// Errors   kInvalidArgument where the profile does not fit the graph.
std::vector<NodeTime> node_times(const Profile& profile, const graph::Graph& planned,
                                 NodeRuns runs = NodeRuns::kCaptured);

/// What it would say had no stage been captured.
Profile without_captures(Profile profile);

/// The unscaled cost of the node at each position in `planned`. As `node_times`.
std::vector<const NodeCost*> node_costs(const Profile& profile, const graph::Graph& planned);

/// What to multiply F and B of a microbatch by where a rank holds `activation_bytes`: between the
/// two that were measured linear, beyond them as there; 1 where nothing was measured.
struct Slowdown {
  double forward = 1;
  double backward = 1;
};
Slowdown slowdown(const Profile& profile, std::int64_t activation_bytes);

/// Time of a message: between two measured sizes linear, beyond them by the last bandwidth.
///
/// Below the smallest size it takes as long as that.
///
/// Errors   kInvalidArgument where the profile has no table of that kind.
double link_us(const Profile& profile, LinkKind kind, std::int64_t bytes, bool beside_compute);

/// Largest microbatch, bytes and times (of any unit) in a profile: sums of a graph's stay exact.
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 22;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 46;
inline constexpr double kMostAmount = 1e12;

/// What a rank does to hand a boundary value on to another stage of its own.
double copy_us(const StepCosts& step, std::int64_t bytes);

/// What a rank and another that it sends to do for a message: copy it, and move it (between two measured sizes linear,
/// beyond them as `link_us`).
double message_work_us(const StepCosts& step, std::int64_t bytes);

/// What `check` says of a profile alone, without its graph.
void check_contents(const Profile& profile);

/// kInvalidArgument, naming the field: indices in range, times and bytes not negative and within
/// the limits above, ranges and message sizes in order, node ids as recorded (ascending, no
/// copies). Any profile is safe to pass in.
void check(const Profile& profile, const graph::Graph& recorded);

/// kInvalidArgument where the profile is of another graph than the one with this hash.
void check_same_graph(const Profile& profile, const std::string& graph_sha256);

/// kInvalidArgument where tensors of so many microbatches might be more bytes than sums of them can
/// count: 2^60 for values of `graph` and what its nodes keep.
void check_countable(const Profile& profile, const graph::Graph& graph,
                     std::int64_t num_microbatches);

}  // namespace trireme::profile
