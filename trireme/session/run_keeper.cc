#include "trireme/session/run_keeper.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <span>
#include <utility>

#include "trireme/base/files.h"
#include "trireme/base/sha256.h"
#include "trireme/engine/measure/detect_topology.h"
#include "trireme/engine/train/rank_checkpoint.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_show.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/plan/schedule/timeline_json.h"

namespace trireme::session {
namespace {

[[noreturn]] void refuse_old_run(const RunFolder& folder, std::int64_t step) {
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("'{}' holds a run of {} steps; --resume continues it, or name another "
                          "folder",
                          folder.root().string(), step));
}

/// A run does not go back.
void check_end(std::int64_t start, std::int64_t end) {
  if (end >= start) return;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("the run has done {} steps and --steps asks for {}; give as many or more",
                          start, end));
}

/// The numbers of a checkpoint may be no good though its files are.
void check_finite(const checkpoint::Index& index, const TrainingOptions& options) {
  if (index.contents.not_finite.empty() || options.allow_nonfinite) return;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("the checkpoint of step {} holds numbers that are not finite, first in "
                          "'{}'; remove its folder to resume from an older one, or give "
                          "--allow-nonfinite",
                          index.step, index.contents.not_finite));
}

/// Plan::copied_nodes of the run that wrote a checkpoint.
std::vector<graph::NodeId> copied_nodes_of(const checkpoint::Facts& facts) {
  const auto found = facts.find("copied_nodes");
  if (found == facts.end()) return {};
  const Json list = parse_json(found->second, "the checkpoint's fact copied_nodes");
  return JsonField(list, "the checkpoint's fact copied_nodes").list([](const JsonField& node) {
    return node.index(0, std::numeric_limits<int>::max() - 1);
  });
}

}  // namespace

void check_run_folder(const RunOptions& options) {
  RunFolder folder(options.folder);
  if (!is_there(folder.root())) return;
  folder.lock();  // until the ranks do
  const auto newest = folder.checkpoints().newest();
  if (newest && !options.resume) refuse_old_run(folder, *newest);
}

void require_same_model(const checkpoint::Index& index, const graph::Graph& recorded) {
  const auto graph = index.facts.find("graph");
  if (graph != index.facts.end() && graph->second == graph::graph_sha256(recorded)) return;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("the checkpoint of step {} is of another model, or recorded at another "
                          "microbatch; give the options that the run was started with",
                          index.step));
}

void resume_from(const CheckpointPlace& checkpoint, const checkpoint::Facts& facts,
                 const TrainingOptions& options, const train::DescribeChange& describe,
                 train::RankSession& session, const Logger& logger) {
  checkpoint::Reader reader(checkpoint.folder, checkpoint.checksums);
  check_finite(reader.index(), options);
  checkpoint::Facts saved = reader.index().facts, now = facts;
  if (options.tolerant) {
    saved.erase("replicas");
    now.erase("replicas");
  }
  for (const std::string& warning : train::check_facts(saved, now, describe)) {
    logger.warning("weights may differ in their last bits: " + warning);
  }
  session.resume(reader);
}

RunKeeper::RunKeeper(const SessionOptions& options, const collectives::World& world)
    : options_(options), world_(world), folder_(options.run.folder), best_(options.run) {
  if (world.rank() == 0) {
    folder_.lock();
    const auto newest = folder_.checkpoints().newest();
    if (newest && !options.run.resume) refuse_old_run(folder_, *newest);
  }
  start_ = train::newest_whole(world, folder_.checkpoints());
  if (start_ && options.num_steps) check_end(*start_, *options.num_steps);
  saved_ = announced_ = start_;
}

void RunKeeper::check_goes_on(const Training& training) const {
  if (!start_) return;
  const checkpoint::Index index =
      checkpoint::load(folder_.checkpoints().published(*start_) / "index.json");
  check_finite(index, options_.training);
  checkpoint::Facts saved = index.facts;
  saved.erase("replicas");  // of no plan so far
  layout::Plan plan{.batch = options_.planning.batch};
  plan.copied_nodes = copied_nodes_of(index.facts);
  train::check_facts(
      saved, train::training_facts(training.workload, training.recorded, plan, options_.training),
      describe(training.recorded.graph));
}

train::DescribeChange RunKeeper::describe(const graph::Graph& now) const {
  return [this, &now](const std::string& fact) -> std::string {
    if (fact == "data") return "other samples than before";
    if (fact != "graph") return "";
    try {
      const graph::Graph before = graph::load(folder_.path("graph.json"));
      return graph::differences_text(graph::differences(before, now));
    } catch (const Error&) {
      return "";  // the hashes are said then
    }
  };
}

PlannedCopies RunKeeper::copies() const {
  if (!start_) return std::nullopt;
  return copied_nodes_of(
      checkpoint::load(folder_.checkpoints().published(*start_) / "index.json").facts);
}

/// What is given to this start beside what was given to the last one.
void RunKeeper::say_changes() const {
  const std::string changes = changes_text(document_.given, options_.run.given);
  if (!changes.empty()) world_.watch.logger.info("changed options: " + changes);
}

void RunKeeper::begin(const Training& training, train::RankSession& session) {
  facts_ = train::training_facts(training.workload, training.recorded, session.plan(),
                                 options_.training);
  if (start_) {
    resume_from({folder_.checkpoints().published(*start_), checkpoint::Checksums::kCompared},
                facts_, options_.training, describe(training.recorded.graph), session,
                world_.watch.logger);
  }
  take_best();
  begin_evaluations();
  writer_.emplace(world_, folder_.checkpoints(), facts_, options_.run.checkpoint_errors);
  writes_beside_ =
      options_.run.checkpoint_writes == CheckpointWrites::kBeside ||
      (options_.run.checkpoint_writes == CheckpointWrites::kAuto && may_copy(session.plan()));
  if (world_.rank() != 0) return;
  const bool goes_on = start_ && is_there(folder_.document());
  if (goes_on) document_ = load_kept_run(folder_.document());
  if (!document_.given.empty()) say_changes();
  document_.given = options_.run.given;
  document_.model = options_.model;
  document_.options = facts_;
  document_.seed = options_.training.seed;
  document_.batch = session.plan().batch;
  has_segment_ = !options_.num_steps || session.next_step() < *options_.num_steps;
  lacks_end_ = !has_segment_ && !document_.segments.empty() && !document_.segments.back().measured;
  if (!has_segment_) return;
  Segment segment = segment_of(session.plan());
  segment.first_step = session.next_step();
  segment.end_step = options_.num_steps.value_or(segment.first_step);
  segment.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  segment.host = measure::host_name();
  segment.plan = fmt::format("plan-{}.json", document_.segments.size() + 1);
  document_.segments.push_back(std::move(segment));
  graph::save(training.recorded.graph, folder_.path("graph.json"));
  layout::save(session.plan(), folder_.path(document_.segments.back().plan));
  session::save(document_, folder_.document());
}

void RunKeeper::save_now(train::RankSession& session) {
  if (world_.rank() == 0) folder_.require_here();
  finish_writing();
  if (saved_ == session.next_step()) return;
  writer_->save(session);
  saved_ = session.next_step();
  announce(*saved_);
}

void RunKeeper::finish_writing() {
  const std::optional<std::int64_t> under_way = announced_ == saved_ ? std::nullopt : saved_;
  writer_->finish();
  if (under_way) announce(*under_way);
}

/// A checkpoint that is published, or that could not be.
void RunKeeper::announce(std::int64_t step) {
  if (announced_ == step) return;
  announced_ = step;
  const checkpoint::Folder folder = folder_.checkpoints();
  if (world_.rank() != 0 || !is_there(folder.published(step))) return;
  if (options_.callbacks.on_checkpoint) {
    options_.callbacks.on_checkpoint(step, folder.published(step).string());
  }
  remove_old();
  // Nobody has said how far it goes: so far.
  if (!options_.num_steps && has_segment_) {
    document_.segments.back().end_step = step;
    session::save(document_, folder_.document());
  }
}

std::string RunKeeper::after_evaluation(train::RankSession& session, const MadeEvaluation& made) {
  if (!best_.is_wanted()) return "";
  const Judged evaluation{made.step, best_.value_of(made.losses)};
  const std::string why_stop = best_.see(evaluation);
  if (evaluation.step > 0 && best_.takes(evaluation.value)) {
    if (evaluation.step == session.next_step()) save_now(session);
    if (is_published(evaluation.step)) best_.add(evaluation);
  }
  if (world_.rank() == 0) {
    write_document(folder_.best(), kBestDocument, to_json(best_.document()));
    remove_old();
  }
  return why_stop;
}

/// Those that came while nobody trained, or too late to be seen, are news.
void RunKeeper::begin_evaluations() {
  if (!options_.run.evaluates_elsewhere || world_.rank() != 0) return;
  evaluations_.emplace(folder_);
  const std::vector<Judged>& seen = best_.document().evaluations;
  for (const MadeEvaluation& one : evaluations_->begin(start_.value_or(0))) {
    const auto before = std::ranges::find(seen, one.step, &Judged::step);
    if (best_.is_wanted() && before == seen.end()) news_ += line_of(one);
  }
}

void RunKeeper::look_for_news() {
  if (evaluations_) news_ += evaluations_->take();
}

bool RunKeeper::has_news() {
  look_for_news();
  return !news_.empty();
}

std::vector<MadeEvaluation> RunKeeper::take_news() {
  return evaluations_of(collectives::from_first(world_, std::exchange(news_, {}), "evaluations"));
}

bool RunKeeper::awaits_news() {
  if (!options_.run.evaluates_elsewhere) return false;
  const bool awaits = has_news() || (evaluations_ && evaluations_->is_one_coming());
  return !collectives::from_first(world_, awaits ? "yes" : "", "evaluations").empty();
}

/// Checkpoints that nobody needs; on rank 0.
void RunKeeper::remove_old() {
  std::set<std::int64_t> needed = best_.steps();
  look_for_news();
  if (evaluations_ && evaluations_->is_one_coming()) {
    needed.insert(evaluations_->begun().begin(), evaluations_->begun().end());
  }
  for (const MadeEvaluation& one : evaluations_of(news_)) needed.insert(one.step);
  folder_.checkpoints().keep_last(options_.run.keep_last, needed);
}

/// The same on all ranks. One that could not be written is none, where that may be.
bool RunKeeper::is_published(std::int64_t step) const {
  const bool is_here = world_.rank() == 0 && is_there(folder_.checkpoints().published(step));
  return !collectives::from_first(world_, is_here ? "yes" : "", "checkpoint").empty();
}

std::string RunKeeper::checkpoint_at(std::int64_t step) const {
  const std::filesystem::path folder = folder_.checkpoints().published(step);
  return is_there(folder) ? folder.string() : "";
}

std::string RunKeeper::best_checkpoint() const {
  const std::vector<Judged>& kept = best_.document().checkpoints;
  return kept.empty() ? "" : folder_.checkpoints().published(kept.front().step).string();
}

/// What the run that goes on has seen, as the first rank says.
void RunKeeper::take_best() {
  if (!best_.is_wanted() || !start_) return;
  std::string text;
  if (world_.rank() == 0 && is_there(folder_.best())) {
    try {
      BestDocument before = load_best(folder_.best());
      std::erase_if(before.checkpoints, [this](const Judged& one) {
        return !is_there(folder_.checkpoints().published(one.step));
      });
      text = to_document_text(kBestDocument, to_json(before));
    } catch (const Error& error) {
      world_.watch.logger.warning("best checkpoints are chosen anew: " + error.message());
    }
  }
  const std::string what = "best checkpoints";
  text = collectives::from_first(world_, text, what);
  if (text.empty()) return;
  const BestDocument before = best_from_json(parse_document(kBestDocument, text, what), what);
  if (!best_.resume(before, *start_) && world_.rank() == 0) {
    world_.watch.logger.warning("best checkpoints are chosen anew: by something else than before");
  }
}

void RunKeeper::after_step(train::RankSession& session) {
  if (world_.rank() == 0) folder_.require_here();
  if (const auto done = writer_->published(); done && world_.rank() == 0) announce(*done);
  const auto is_due = [&](std::int64_t every) {
    return every > 0 && session.next_step() % every == 0;
  };
  const bool is_evaluated = options_.run.evaluates_elsewhere && is_due(options_.run.evaluate_every);
  if (!is_due(options_.run.checkpoint_every) && !is_evaluated) return;
  if (!writes_beside_ || saved_ == session.next_step()) return save_now(session);
  finish_writing();
  writer_->begin(session);
  saved_ = session.next_step();
}

/// Whether every rank's memory allows a copy of what it writes: by the plan, so that all ranks decide alike.
bool RunKeeper::may_copy(const layout::Plan& plan) const {
  const std::int64_t limit = options_.planning.device_memory_bytes;
  if (limit == 0) return true;
  if (!plan.prediction) return false;
  for (const auto& kinds : plan.prediction->peak_bytes) {
    std::int64_t bytes = 0;
    for (const auto& [kind, part] : kinds) {
      bytes += part;
      if (kind == "parameters" || kind == "optimizer") bytes += part;
    }
    if (bytes > limit) return false;
  }
  return true;
}

bool RunKeeper::is_evaluation_due(const train::RankSession& session) const {
  const std::int64_t step = session.next_step(), every = options_.run.evaluate_every;
  if (step == options_.num_steps || options_.run.evaluates_elsewhere) return false;  // at the end
  return every > 0 ? step % every == 0 : step == 0;
}

void RunKeeper::end(const Measured& measured, const std::vector<schedule::Timeline>& timelines,
                    std::int64_t num_steps, bool is_stopped) {
  if (!has_segment_ && !lacks_end_) return;
  Segment& segment = document_.segments.back();
  if (!timelines.empty()) {
    segment.timeline = fmt::format("timeline-{}.json", document_.segments.size());
    schedule::save(timelines, folder_.path(segment.timeline));
  }
  segment.measured = measured;
  if (is_stopped) segment.stopped_at = num_steps;
  if (!is_stopped || !options_.num_steps) segment.end_step = num_steps;
  session::save(document_, folder_.document());
}

std::string checkpoint_identity(const std::filesystem::path& checkpoint) {
  const std::filesystem::path index = checkpoint / "index.json";
  const std::string text = read_file(index);
  Sha256 hash;
  hash.add(std::as_bytes(std::span(text)));
  return fmt::format("step {}\nindex {}\n", checkpoint::load(index).step, hash.finish());
}

}  // namespace trireme::session
