#include "trireme/engine/train/rank_checkpoint.h"

#include <utility>

#include "trireme/base/error.h"
#include "trireme/base/json.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/layout/manual.h"

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
  layout::save(session.plan(), partial / "plan.json");
  const checkpoint::Index index{.step = step,
                                .position = step * session.plan().batch.global_batch,
                                .facts = facts,
                                .contents = std::move(contents)};
  checkpoint::save(index, partial / "index.json");
  folder.publish(partial, step);
}

/// This rank's part of it.
void write_and_publish(const World& world, RankSession& session, const checkpoint::Folder& folder,
                       const checkpoint::Facts& facts) {
  std::string begun;
  if (world.rank() == 0) begun = folder.begin(session.next_step()).string();
  const std::filesystem::path partial = from_first(world, begun, "begin checkpoint");
  const int replicas = layout::train_role(session.plan()).mesh.data;
  const checkpoint::Contents mine = checkpoint::write_share(
      partial / ("rank-" + std::to_string(world.rank()) + ".safetensors"),
      checkpoint_items(session.state(), session.stage()), {session.replica(), replicas});
  const auto texts = gather(world, compact_text(to_json(mine)), "write checkpoint");
  if (world.rank() == 0) publish(session, folder, partial, facts, merged(texts));
  gather(world, "", "publish checkpoint");
}

}  // namespace

void save_checkpoint(const World& world, RankSession& session, const checkpoint::Folder& folder,
                     const checkpoint::Facts& facts) {
  session.check_replicas();
  telling_others(world, session.next_step(),
                 [&] { write_and_publish(world, session, folder, facts); });
}

}  // namespace trireme::train
