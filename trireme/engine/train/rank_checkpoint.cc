#include "trireme/engine/train/rank_checkpoint.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "trireme/base/json.h"
#include "trireme/engine/checkpoint/checkpoint_reader.h"
#include "trireme/engine/train/finite_check.h"
#include "trireme/engine/train/telling_others.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_json.h"

namespace trireme::train {
namespace {

/// What all ranks wrote, as one.
checkpoint::Contents merged(const std::vector<std::string>& texts) {
  checkpoint::Contents all;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string origin = "what rank " + std::to_string(rank) + " wrote";
    const Json json = parse_json(texts[rank], origin);
    all.merge(checkpoint::contents_from_json(JsonField(json, origin)));
  }
  return all;
}

/// Ranks of hosts that do not share the folder have written into others.
void check_files(const std::filesystem::path& folder, const checkpoint::Contents& contents) {
  for (const checkpoint::File& file : contents.files) {
    std::error_code problem;
    const auto bytes = std::filesystem::file_size(folder / file.name, problem);
    if (!problem && bytes == static_cast<std::uintmax_t>(file.bytes)) continue;
    throw Error(ErrorKind::kIo, "rank 0 does not see '" + (folder / file.name).string() +
                                    "' as another rank wrote it; put the run's folder on a file "
                                    "system that all hosts share");
  }
}

/// What is left to rank 0 when all shards are there.
void publish(const RankSession& session, const checkpoint::Folder& folder,
             const std::filesystem::path& partial, const checkpoint::Facts& facts,
             checkpoint::Contents contents) {
  const std::int64_t step = session.next_step();
  check_files(partial, contents);
  if (!session.options().allow_nonfinite && !contents.not_finite.empty()) {
    require_finite("'" + contents.not_finite + "' is not finite",
                   std::max<std::int64_t>(step - 1, 0));
  }
  layout::save(session.plan(), partial / "plan.json");
  const checkpoint::Index index{.step = step,
                                .position = step * session.plan().batch.global_batch,
                                .facts = facts,
                                .contents = std::move(contents)};
  checkpoint::save(index, partial / "index.json");
  folder.publish(partial, step);
}

/// This rank's part of it.
void write_and_publish(const collectives::World& world, RankSession& session,
                       const checkpoint::Folder& folder, const checkpoint::Facts& facts) {
  std::string begun;
  if (world.rank() == 0) begun = folder.begin(session.next_step()).string();
  const std::filesystem::path partial = collectives::from_first(world, begun, "begin checkpoint");
  const int replicas = layout::train_role(session.plan()).mesh.data;
  const checkpoint::Contents mine =
      checkpoint::write_share(partial / ("rank-" + std::to_string(world.rank()) + ".safetensors"),
                              checkpoint_items(session.state()), {session.replica(), replicas});
  const auto texts = collectives::gather(world, compact_text(to_json(mine)), "write checkpoint");
  if (world.rank() == 0) publish(session, folder, partial, facts, merged(texts));
  collectives::gather(world, "", "publish checkpoint");
}

/// What is wrong with this rank's part of a checkpoint; empty where nothing is.
std::string damage(const collectives::World& world, const checkpoint::Folder& folder,
                   std::int64_t step) {
  try {
    checkpoint::Reader reader(folder.published(step));
    if (reader.index().step != step) {
      return "the checkpoint of step " + std::to_string(step) + " says that it is of step " +
             std::to_string(reader.index().step) + "; its folder was renamed";
    }
    reader.verify(static_cast<std::size_t>(world.rank()), static_cast<std::size_t>(world.size()));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorruptData) throw;
    return error.message();
  }
  return "";
}

/// Of all ranks: the first.
std::string first_damage(const collectives::World& world, const checkpoint::Folder& folder,
                         std::int64_t step) {
  for (const std::string& text :
       collectives::gather(world, damage(world, folder, step), "check checkpoint")) {
    if (!text.empty()) return text;
  }
  return "";
}

std::vector<std::int64_t> steps_from_first(const collectives::World& world,
                                           const checkpoint::Folder& folder) {
  const std::string text = world.rank() == 0 ? compact_text(Json(folder.steps())) : std::string();
  return parse_json(collectives::from_first(world, text, "checkpoints"), "the list of checkpoints")
      .get<std::vector<std::int64_t>>();
}

}  // namespace

std::optional<std::int64_t> newest_whole(const collectives::World& world,
                                         const checkpoint::Folder& folder) {
  const std::vector<std::int64_t> steps = steps_from_first(world, folder);
  std::vector<std::string> damages;  // from the newest on
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string problem = first_damage(world, folder, *step);
    if (!problem.empty()) {
      damages.push_back(problem);
      continue;
    }
    if (world.rank() != 0) return *step;
    for (std::size_t i = 0; i < damages.size(); ++i) {
      const std::int64_t damaged = *(steps.rbegin() + static_cast<std::ptrdiff_t>(i));
      folder.set_aside(damaged);
      world.watch.logger.warning("the checkpoint of step " + std::to_string(damaged) +
                                 " is damaged and set aside as step-" + std::to_string(damaged) +
                                 ".damaged: " + damages[i]);
    }
    if (!damages.empty()) {
      world.watch.logger.warning("resumes from the one before, of step " + std::to_string(*step));
    }
    return *step;
  }
  if (!damages.empty()) throw Error(ErrorKind::kCorruptData, damages[0]);
  return std::nullopt;
}

void save_checkpoint(const collectives::World& world, RankSession& session,
                     const checkpoint::Folder& folder, const checkpoint::Facts& facts) {
  session.check_replicas();
  telling_others(world, session.next_step(),
                 [&] { write_and_publish(world, session, folder, facts); });
}

}  // namespace trireme::train
