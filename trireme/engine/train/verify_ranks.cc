#include "trireme/engine/train/verify_ranks.h"

#include <bit>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "trireme/base/json.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/replica_buffers.h"
#include "trireme/engine/train/telling_others.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {
namespace {

using reference::Digests;
using reference::gradients_of;
using reference::Keep;
using reference::RunRecord;

/// Names of the buffers that the nodes of these stages, or of any, read or write.
std::set<std::string> buffers_of(const graph::Graph& graph, const layout::Plan& plan,
                                 const std::optional<std::vector<int>>& stages) {
  const auto used_by = layout::stages_of_values(graph, plan);
  std::set<std::string> names;
  for (const graph::Buffer& buffer : graph.buffers) {
    const auto used = used_by.find(buffer.value);
    if (used == used_by.end() || (stages && !layout::has_any(used->second, *stages))) continue;
    names.insert(buffer.name);
    names.insert(buffer.aliases.begin(), buffer.aliases.end());
  }
  return names;
}

/// Everything in a record but losses, by kind and name.
std::vector<std::string> names_of(const RunRecord& record) {
  std::vector<std::string> names;
  for (std::size_t step = 0; step < record.gradients.size(); ++step) {
    for (const auto& [name, digest] : record.gradients[step]) {
      names.push_back("gradient of step " + std::to_string(step) + " of '" + name + "'");
    }
  }
  for (const auto& [name, digest] : record.weights) names.push_back("weight '" + name + "'");
  for (const auto& [name, digest] : record.buffers) names.push_back("buffer '" + name + "'");
  return names;
}

template <typename IsWanted>
Digests part_of(const Digests& all, IsWanted&& is_wanted) {
  Digests part;
  for (const auto& [name, digest] : all) {
    if (is_wanted(name)) part[name] = digest;
  }
  return part;
}

/// What the rank of `session` holds of the reference.
RunRecord part_of(const RunRecord& reference, const RankSession& session,
                  const std::set<std::string>& buffers) {
  const parameters::ParameterStore& store = session.store();
  const std::set<std::string> owned(store.names().begin(), store.names().end());
  RunRecord part{.losses = reference.losses};
  for (const Digests& gradients : reference.gradients) {
    part.gradients.push_back(
        part_of(gradients, [&](const std::string& name) { return owned.contains(name); }));
  }
  part.weights =
      part_of(reference.weights, [&](const std::string& name) { return store.has_value(name); });
  part.buffers =
      part_of(reference.buffers, [&](const std::string& name) { return buffers.contains(name); });
  return part;
}

/// Losses as their bits: a NaN is one too.
Json to_json(const RunRecord& run) {
  Json losses = Json::array();
  for (const double loss : run.losses) losses.push_back(std::bit_cast<std::uint64_t>(loss));
  return {{"losses", losses},
          {"gradients", run.gradients},
          {"weights", run.weights},
          {"buffers", run.buffers}};
}

RunRecord run_from_json(const Json& json) {
  RunRecord run{.gradients = json["gradients"].get<std::vector<Digests>>(),
                .weights = json["weights"].get<Digests>(),
                .buffers = json["buffers"].get<Digests>()};
  for (const Json& loss : json["losses"]) {
    run.losses.push_back(std::bit_cast<double>(loss.get<std::uint64_t>()));
  }
  return run;
}

}  // namespace

ReferenceRun run_on_first(
    const collectives::World& world,
    const std::function<ReferenceRun(const std::function<void()>& after_step)>& run) {
  const std::string what = "rank 0's run";
  ReferenceRun result;
  if (world.rank() == 0) {
    telling_others(world, 0, [&] {
      result = run([&] { collectives::from_first(world, "", what); });  // a sign of life
    });
    memory::release_cached_blocks();
    collectives::from_first(world, compact_text(to_json(result.run)), what);
    return result;
  }
  std::string text;
  while (text.empty()) text = collectives::from_first(world, "", what);
  result.run = run_from_json(parse_json(text, what));
  return result;
}

ReferenceRun verify_on_first(const collectives::World& world, const MakeWorkload& make_workload,
                             const layout::Plan& plan, const ComparedSteps& options) {
  return run_on_first(world, [&](const std::function<void()>& after_step) {
    return verify_in_one_process(make_workload, plan, options, after_step);
  });
}

void check_comparable(const graph::Graph& graph, const layout::Plan& plan) {
  if (layout::train_role(plan).mesh.data == 1) return;
  const std::string why = why_one_replica(graph, {});
  if (why.empty()) return;
  throw Error(ErrorKind::kInvalidArgument,
              why +
                  ". What one process does, microbatch after microbatch, they cannot do: verify "
                  "with one replica");
}

Comparison verify_rank(const collectives::World& world, const MakeWorkload& make_workload,
                       const layout::Plan& plan, const ComparedSteps& options,
                       const RunRecord& reference) {
  const Workload workload = construct(make_workload, options.seed);
  const record::Recording recorded =
      record_training(workload, plan.batch.microbatch, options.sizes);
  check_comparable(recorded.graph, plan);
  RankSession session(world, workload, recorded, plan, training_of(options));
  RunRecord run;
  for (std::int64_t step = 0; step < options.num_steps; ++step) {
    run.losses.push_back(session.step().losses.total());
    take_gradients(gradients_of(session.store(), session.whole_gradients(),
                                [&](const std::string& name) {
                                  return session.operations().has_gradient(name);
                                }),
                   Keep::kDigests, run);
  }
  {
    const RankSession::WholeValues whole(session);
    take_state(workload, session.store(), Keep::kDigests, run);
  }
  const auto buffers = buffers_of(session.recording().graph, plan, session.stages());
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

std::string first_missing(const collectives::World& world, const RunRecord& mine,
                          const RunRecord& reference) {
  std::string text;
  for (const std::string& name : names_of(mine)) text += name + '\0';  // names may hold newlines
  std::set<std::string> compared;
  for (const std::string& list : collectives::gather(world, text, "names compared")) {
    std::istringstream lines(list);
    for (std::string name; std::getline(lines, name, '\0');) compared.insert(name);
  }
  for (const std::string& name : names_of(reference)) {
    if (!compared.contains(name)) return name + " is held by no rank";
  }
  return "";
}

std::string first_difference(const collectives::World& world, const Comparison& comparison) {
  const auto all = collectives::gather(world, comparison.first_difference, "differences");
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (!all[r].empty()) return "rank " + std::to_string(r) + ": " + all[r];
  }
  return "";
}

}  // namespace trireme::train
