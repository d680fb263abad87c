#include "trireme/engine/train/verify_ranks.h"

#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "trireme/engine/train/construct.h"
#include "trireme/plan/layout/crossings.h"

namespace trireme::train {
namespace {

/// Names of the buffers that the nodes of a stage, or of any, read or write.
std::set<std::string> buffers_of(const graph::Graph& graph, const layout::Plan& plan,
                                 std::optional<int> stage) {
  const auto stages = layout::stages_of_values(graph, plan);
  std::set<std::string> names;
  for (const graph::Buffer& buffer : graph.buffers) {
    const auto used = stages.find(buffer.value);
    if (used == stages.end() || (stage && !used->second.contains(*stage))) continue;
    names.insert(buffer.name);
    names.insert(buffer.aliases.begin(), buffer.aliases.end());
  }
  return names;
}

/// Everything in a record but losses, by kind and name.
std::vector<std::string> names_of(const RunRecord& record) {
  std::vector<std::string> names;
  for (std::size_t step = 0; step < record.gradients.size(); ++step) {
    for (const auto& [name, tensor] : record.gradients[step]) {
      names.push_back("gradient of step " + std::to_string(step) + " of '" + name + "'");
    }
  }
  for (const auto& [name, tensor] : record.weights) names.push_back("weight '" + name + "'");
  for (const auto& [name, tensor] : record.buffers) names.push_back("buffer '" + name + "'");
  return names;
}

template <typename Keep>
Tensors part_of(const Tensors& all, Keep&& keep) {
  Tensors part;
  for (const auto& [name, tensor] : all) {
    if (keep(name)) part[name] = tensor;
  }
  return part;
}

/// What the rank of `session` holds of the reference.
RunRecord part_of(const RunRecord& reference, const RankSession& session,
                  const std::set<std::string>& buffers) {
  const parameters::ParameterStore& store = session.store();
  const std::set<std::string> owned(store.names().begin(), store.names().end());
  RunRecord part{.losses = reference.losses};
  for (const Tensors& gradients : reference.gradients) {
    part.gradients.push_back(
        part_of(gradients, [&](const std::string& name) { return owned.contains(name); }));
  }
  part.weights =
      part_of(reference.weights, [&](const std::string& name) { return store.has_value(name); });
  part.buffers =
      part_of(reference.buffers, [&](const std::string& name) { return buffers.contains(name); });
  return part;
}

}  // namespace

Comparison verify_rank(const World& world, const MakeWorkload& make_workload,
                       const layout::Plan& plan, const VerifyOptions& options,
                       const RunRecord& reference) {
  const Workload workload = construct(make_workload, options.seed);
  const record::Recording recorded =
      record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                     {.microbatch = plan.batch.microbatch, .sizes = options.sizes});
  RankSession session(world, workload, recorded, plan,
                      {.seed = options.seed,
                       .optimizer = options.optimizer,
                       .allow_nonfinite = true,
                       .drift_check_step = -1});
  RunRecord run;
  for (std::int64_t step = 0; step < options.num_steps; ++step) {
    run.losses.push_back(session.step().losses.total());
    run.gradients.push_back(gradients_of(
        session.store(), session.sums().gradients(),
        [&](const std::string& name) { return session.operations().has_gradient(name); }));
  }
  take_state(workload, session.store(), run);
  const auto buffers = buffers_of(session.recording().graph, plan, session.stage());
  run.buffers =
      part_of(run.buffers, [&](const std::string& name) { return buffers.contains(name); });
  Comparison result{.against = "serial executor"};
  const RunRecord mine = part_of(reference, session, buffers);
  compare(run, mine, result);
  RunRecord used = reference;
  used.buffers = part_of(used.buffers, [&](const std::string& name) {
    return buffers_of(session.recording().graph, plan, std::nullopt).contains(name);
  });
  const std::string missing = first_missing(world, mine, used);
  if (result.first_difference.empty()) result.first_difference = missing;
  result.is_bitwise = result.first_difference.empty();
  return result;
}

std::string first_missing(const World& world, const RunRecord& mine, const RunRecord& reference) {
  std::string text;
  for (const std::string& name : names_of(mine)) text += name + '\0';  // names may hold newlines
  std::set<std::string> compared;
  for (const std::string& list : gather(world, text, "names compared")) {
    std::istringstream lines(list);
    for (std::string name; std::getline(lines, name, '\0');) compared.insert(name);
  }
  for (const std::string& name : names_of(reference)) {
    if (!compared.contains(name)) return name + " is held by no rank";
  }
  return "";
}

std::string first_difference(const World& world, const Comparison& comparison) {
  const auto all = gather(world, comparison.first_difference, "differences");
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (!all[r].empty()) return "rank " + std::to_string(r) + ": " + all[r];
  }
  return "";
}

}  // namespace trireme::train
