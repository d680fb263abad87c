#include "trireme/engine/measure/measure_profile.h"

#include <ATen/Functions.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/engine/measure/detect_topology.h"
#include "trireme/engine/measure/node_measure.h"
#include "trireme/engine/measure/range_measure.h"
#include "trireme/engine/program/boundary_copy.h"
#include "trireme/engine/program/saved_tensors.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/error.h"
#include "trireme/kernels/reduce/fold.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/profile/profile_json.h"
#include "trireme/wire/system/thread.h"

namespace trireme::measure {

namespace {

constexpr std::int64_t kNumElements = std::int64_t{4} << 20;

/// `work` on each part of `cold` that is of the size of `like`.
void for_parts(const at::Tensor& cold, const at::Tensor& like,
               const std::function<void(const at::Tensor&)>& work) {
  for (const at::Tensor& part : cold.split(like.numel())) work(part);
}

}  // namespace

profile::StepCosts measure_step(const UpdateFunction& update, const RepeatOptions& options,
                                const BusyRanks& ranks) {
  const at::NoGradGuard no_grad;
  const at::Tensor value = at::full({kNumElements}, 0.5), gradient = at::full_like(value, 1e-3);
  const at::Tensor one = gradient.narrow(0, 0, kNumElements / 4).clone();
  const at::Tensor boundary = gradient.narrow(0, 0, kNumElements / 16).clone();
  const at::Tensor cold = at::zeros({4 * kNumElements});
  const auto measure = [&](const at::Tensor& memory, const std::function<void()>& work) {
    ranks.barrier();
    const Timing timing = time_repeats(options, [] {}, work);
    return timing.median_us * 1000 / static_cast<double>(memory.numel());
  };
  const auto fold_parts = [&] {
    for_parts(cold, one, [&](const at::Tensor& sum) {
      kernels::fold(kernels::FoldStep::kNext, one.const_data_ptr<float>(),
                    sum.mutable_data_ptr<float>(), sum.numel());
    });
  };
  const auto copy_parts = [&] {
    for_parts(cold, boundary,
              [&](const at::Tensor& message) { program::copy_span(boundary, message); });
  };
  std::vector<double> costs = {measure(value, [&] { update(value, gradient); }),
                               measure(cold, fold_parts),
                               measure(cold, copy_parts) / sizeof(float)};
  costs = ranks.medians(costs);
  return {.optimizer_ns = costs[0], .fold_ns = costs[1], .copy_ns_per_byte = costs[2]};
}

profile::FileCosts measure_files(const std::filesystem::path& folder, const RepeatOptions& options,
                                 const BusyRanks& ranks) {
  const at::Tensor value = at::full({4 * kNumElements}, 0.5);
  at::Tensor tensor = value;
  std::unique_ptr<program::OffloadedTensors> file;
  const auto write = [&] {
    file = std::make_unique<program::OffloadedTensors>(folder, std::vector{&tensor});
  };
  const auto read = [&] { file->read({&tensor}); };
  const auto measure = [&](const std::function<void()>& before, const std::function<void()>& work) {
    ranks.barrier();
    Repeats repeats(options);
    while (repeats.is_wanted()) {
      before();
      const auto begin = std::chrono::steady_clock::now();
      work();
      repeats.add(std::chrono::steady_clock::now() - begin);
    }
    return summary(repeats.times_us()).median_us * 1000 / static_cast<double>(value.nbytes());
  };
  std::vector<double> costs = {measure([&] { tensor = value; }, write),
                               measure([&] { tensor = at::Tensor(); }, read)};
  costs = ranks.medians(costs);
  return {.write_ns_per_byte = costs[0], .read_ns_per_byte = costs[1]};
}

double measure_reading(const std::function<void()>& read, const RepeatOptions& options,
                       const BusyRanks& ranks) {
  ranks.barrier();
  return ranks.medians({time_repeats(options, [] {}, read).median_us}).front();
}

namespace {

profile::Hardware hardware() {
  return {.processor = processor_name(),
          .num_cores = host_facts().num_cores,
          .instruction_set = at::get_cpu_capability(),
          .torch_version = TORCH_VERSION};
}

std::vector<double> node_times(const NodeCosts& nodes) {
  std::vector<double> times;
  for (const int index : nodes.cost_of) {
    const profile::NodeCost& cost = nodes.costs[index];
    times.push_back(cost.forward_us + cost.input_us + cost.weight_us);
  }
  return times;
}

std::vector<int> cuts_between_ranges(const NodeCosts& nodes, const Subject& subject) {
  const auto cut = middle_cut(subject.recording.graph, node_times(nodes));
  return cut ? std::vector{*cut} : std::vector<int>();
}

int num_ranks_of_first_host(const BusyRanks& ranks, const std::string& host) {
  const std::vector<std::string> hosts = ranks.gather(host);
  return static_cast<int>(std::ranges::count(hosts, hosts[0]));
}

/// What the first rank measured.
profile::Profile from_first(const profile::Profile& mine, const BusyRanks& ranks) {
  const std::string text = ranks.from_first(compact_text(to_json(mine)));
  return profile::profile_from_json(parse_json(text, "profile of the first rank"));
}

/// Where no core is left for the transport's threads, they take theirs from the ranks' computing.
void add_links(MeasuredLinks links, profile::Profile& profile) {
  if (transport::count_cores() <= profile.num_busy_ranks) {
    profile.step.messages = std::move(links.work);
  }
  profile.links = std::move(links.tables);
}

double ratio(double now, double then) { return then > 0 ? now / then : 1; }

}  // namespace

ProfileOptions with_few_repeats(ProfileOptions options) {
  options.nodes = {.min_repeats = 1, .max_repeats = 3, .min_time = std::chrono::microseconds(200)};
  options.ranges = options.held = {.min_repeats = 2, .max_repeats = 2};
  options.links.sizes = {64, 64 << 10, 4 << 20};
  options.links.min_round_trips = options.links.max_round_trips = 2;
  return options;
}

profile::Profile measure_profile(const Subject& subject, transport::Endpoint* endpoint,
                                 const ProfileOptions& options) {
  if (!options.update) {
    throw Error(ErrorKind::kInvalidArgument, "a profile needs the optimizer's update function");
  }
  const graph::Graph& graph = subject.recording.graph;
  NodeCosts nodes = measure_nodes(subject, options.nodes);
  profile::Profile profile{
      .graph_sha256 = graph::graph_sha256(graph),
      .microbatch = program::num_samples(graph, subject.batch),
      .num_busy_ranks = num_ranks_of_first_host(subject.ranks, options.links.host),
      .hardware = hardware()};
  const std::vector<int> cuts = cuts_between_ranges(nodes, subject);
  RangeRuns runs(subject, cuts, options.capture);
  std::vector<std::vector<profile::RangeTime>> visits;
  const auto visit = [&] { visits.push_back(measure_ranges(subject, runs, options.ranges)); };
  visit();
  profile.uncaptured = measure_uncaptured(subject, runs, cuts, options.held);
  visit();
  profile.held = measure_held(subject, options.held);
  visit();
  profile.costs = std::move(nodes.costs);
  profile.cost_of = std::move(nodes.cost_of);
  profile.step = measure_step(options.update, options.nodes, subject.ranks);
  if (!options.offload_folder.empty()) {
    profile.step.file = measure_files(options.offload_folder, options.nodes, subject.ranks);
  }
  visit();
  if (endpoint != nullptr)
    add_links(measure_links(*endpoint, subject.ranks, options.links), profile);
  visit();
  profile.ranges = middle_visit(std::move(visits));
  profile = from_first(profile, subject.ranks);
  profile::check(profile, graph);
  return profile;
}

std::vector<RangeDrift> drift(const profile::Profile& then, const Subject& subject,
                              const RepeatOptions& options) {
  std::vector<int> cuts;
  for (const profile::RangeTime& range : then.ranges) {
    if (range.begin > 0) cuts.push_back(range.begin);
  }
  RangeRuns runs(subject, cuts, then.uncaptured ? program::Capture::kOn : program::Capture::kOff);
  std::vector<RangeDrift> result;
  for (const profile::RangeTime& now : measure_ranges(subject, runs, options)) {
    const profile::RangeTime& before = then.ranges[result.size()];
    result.push_back(
        {ratio(now.forward_us, before.forward_us), ratio(now.backward_us, before.backward_us)});
  }
  return result;
}

}  // namespace trireme::measure
