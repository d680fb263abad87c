#include "trireme/engine/train/rank_checkpoint.h"

#include <algorithm>
#include <functional>
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

/// What does not change while a checkpoint is written.
struct Heading {
  std::int64_t step = 0;
  layout::Plan plan;
  checkpoint::Facts facts;
  bool allow_nonfinite = false;
};

/// What is left to rank 0 when all shares are there.
void publish(const checkpoint::Folder& folder, const std::filesystem::path& partial,
             const Heading& heading, checkpoint::Contents contents) {
  check_files(partial, contents);
  if (!heading.allow_nonfinite && !contents.not_finite.empty()) {
    require_finite("'" + contents.not_finite + "' is not finite",
                   std::max<std::int64_t>(heading.step - 1, 0));
  }
  layout::save(heading.plan, partial / "plan.json");
  const checkpoint::Index index{.step = heading.step,
                                .position = heading.step * heading.plan.batch.global_batch,
                                .facts = heading.facts,
                                .contents = std::move(contents)};
  checkpoint::save(index, partial / "index.json");
  folder.publish(partial, heading.step);
}

/// What `part` fails with; empty where it does not.
std::string problem_of(const std::function<void()>& part) {
  try {
    part();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCorruptData) throw;
    return error.what();
  }
  return "";
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

CheckpointWriter::CheckpointWriter(const collectives::World& world, checkpoint::Folder folder,
                                   checkpoint::Facts facts, CheckpointErrors on_error)
    : world_(world), folder_(std::move(folder)), facts_(std::move(facts)), on_error_(on_error) {}

void CheckpointWriter::begin(RankSession& session) { start(session, true); }

void CheckpointWriter::save(RankSession& session) {
  start(session, false);
  finish();
}

void CheckpointWriter::start(RankSession& session, bool copies) {
  finish();
  session.check_replicas();
  const std::int64_t step = session.next_step();
  std::string begun, problem;
  telling_others(world_, step, [&] {
    if (world_.rank() != 0) return;
    const auto begin = [&] { begun = folder_.begin(step).string(); };
    if (on_error_ == CheckpointErrors::kStop) return begin();
    problem = problem_of(begin);
  });
  begun = collectives::from_first(world_, begun, "begin checkpoint");
  if (begun.empty()) return give_up(problem);
  telling_others(world_, step, [&] {
    checkpoint::ShareFile share("rank-" + std::to_string(world_.rank()) + ".safetensors",
                                checkpoint_items(session.state()),
                                {session.place().index, session.place().num_ranks});
    if (copies) share.copy();
    CheckpointJob::Publish publish_all;
    if (world_.rank() == 0) {
      publish_all =
          [folder = folder_, begun,
           heading = Heading{step, session.plan(), facts_, session.options().allow_nonfinite}](
              checkpoint::Contents all) { publish(folder, begun, heading, std::move(all)); };
    }
    job_ = std::make_unique<CheckpointJob>(step, begun, std::move(share), world_.rank(),
                                           world_.size(), std::move(publish_all));
  });
}

/// Whether a rank has a problem; where that is to end the training it throws.
bool CheckpointWriter::has_failed(const std::string& problem) {
  for (const std::string& text : collectives::gather(world_, problem, "write checkpoint")) {
    if (text.empty()) continue;
    give_up(text);
    return true;
  }
  return false;
}

void CheckpointWriter::give_up(const std::string& problem) {
  job_.reset();
  if (world_.rank() != 0) return;
  world_.watch.logger.warning("no checkpoint could be written, and the training goes on: " +
                              problem);
}

void CheckpointWriter::finish() {
  if (!job_) return;
  const std::int64_t step = job_->step();
  std::string problem;
  const auto part = [&](const std::function<void()>& wait) {
    telling_others(world_, step, [&] {
      if (on_error_ == CheckpointErrors::kStop) return wait();
      problem = problem_of(wait);
    });
    return has_failed(problem);
  };
  if (part([&] { job_->wait_written(); })) return;
  if (part([&] {
        if (world_.rank() == 0) job_->wait_published();
      })) {
    return;
  }
  job_.reset();
}

std::optional<std::int64_t> CheckpointWriter::published() {
  if (!job_) return std::nullopt;
  bool is_published = false;
  const auto look = [&] { is_published = job_->is_published(); };
  on_error_ == CheckpointErrors::kStop ? look() : static_cast<void>(problem_of(look));
  return is_published ? std::optional(job_->step()) : std::nullopt;
}

}  // namespace trireme::train
