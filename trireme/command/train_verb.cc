#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <utility>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"
#include "trireme/command/forecasts.h"
#include "trireme/command/training_options.h"
#include "trireme/command/training_report.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/memory/block_allocator.h"
#include "trireme/engine/memory/resident.h"
#include "trireme/engine/record/convert.h"
#include "trireme/engine/train/construct.h"
#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/gather_state.h"
#include "trireme/engine/train/measured_timeline.h"
#include "trireme/engine/train/memory_check.h"
#include "trireme/engine/train/session.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/profile/json.h"
#include "trireme/plan/simulate/predicted_timeline.h"
#include "trireme/plan/timeline/json.h"
#include "trireme/plan/topology/json.h"

namespace trireme::command {
namespace {

struct Options {
  PlanOptions plan;
  ReportOptions report;
  std::string save;
  std::string timeline;
  std::string profile;  ///< For the predicted lanes of the timeline; may be empty.
  std::string topology = "topology.json";
  bool serial = false;
  train::SessionOptions session;
};

std::int64_t model_bytes(const Model& model) {
  std::int64_t bytes = 0;
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      if (tensor.defined()) bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
  }
  return bytes;
}

/// Everything that a training is made of; the recordings share the workload's tensors.
struct Training {
  Workload workload;
  std::int64_t data_bytes;  ///< Live tensors beside the model's: the samples.
  record::Recording recorded;
  layout::Plan plan;

  Training(const Options& options, const Context& context)
      : workload(train::construct(context.workload(), context.seed)),
        data_bytes(memory::memory_use().live_bytes - model_bytes(workload.model)),
        recorded(record(graph::Mode::kTrain)),
        plan(options.plan.plan_for(recorded.graph)) {}

  record::Recording record(graph::Mode mode) const {
    const train::BatchReader reader(workload.training, workload.model);
    return record::record(workload.model, reader.maker(), mode);
  }
};

/// Registered parameters and buffers by name.
void save_weights(const train::Tensors& weights, const std::string& path) {
  std::vector<safetensors::Tensor> tensors;
  std::deque<std::vector<std::byte>> data;  // a deque, since the tensors are views of its elements
  for (const auto& [name, tensor] : weights) {
    data.push_back(record::to_bytes(tensor));
    tensors.push_back(
        {name, record::to_dtype(tensor.scalar_type()), tensor.sizes().vec(), data.back()});
  }
  write_file_atomically(path, safetensors::to_bytes(std::move(tensors)));
}

train::Tensors state_of(const Model& model) {
  train::Tensors result;
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      if (tensor.defined()) result[name] = tensor.detach();
    }
  }
  return result;
}

/// What is printed when training has ended.
struct Ending {
  Json json;
  std::string text;

  /// bytes, resident   of the ranks that have most.
  void add_peak(std::int64_t bytes, std::int64_t resident, const layout::Plan& plan) {
    json["peak_bytes"] = bytes;
    json["resident_peak_bytes"] = resident;
    text += fmt::format("peak of live tensors {:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
    if (plan.prediction) {
      std::int64_t predicted = 0;
      for (const auto& rank : plan.prediction->peak_bytes) {
        std::int64_t sum = 0;
        for (const auto& [kind, part] : rank) sum += part;
        predicted = std::max(predicted, sum);
      }
      json["predicted_peak_bytes"] = predicted;
      text += fmt::format(" (predicted {:.1f})", static_cast<double>(predicted) / (1 << 20));
    }
    text += fmt::format(", of the process {:.0f} MiB\n", static_cast<double>(resident) / (1 << 20));
  }

  void add_weights(const train::Tensors& weights, const std::string& path) {
    save_weights(weights, path);
    json["weights"] = path;
    text += "weights written to " + path + "\n";
  }

  void add_evaluation(const program::StepLosses& losses) {
    json["evaluation"] = losses_json(losses);
    text += "evaluation  " + losses_text(losses) + "\n";
  }
};

/// Prints what is known at the end.
void finish(const Context& context, const TrainingReport& report, Ending ending) {
  ending.json["median_step_ms"] = report.median_step_ms();
  ending.text = fmt::format("median step {:.2f} ms, ", report.median_step_ms()) + ending.text;
  fmt::print("{}", context.json ? ending.json.dump() + "\n" : ending.text);
}

/// What is written in the end must not fail only then.
void check_outputs(const Options& options) {
  for (const std::string& path : {options.save, options.timeline}) {
    if (!path.empty()) check_writable(path);
  }
}

/// All stages in this process.
int train_serially(const Options& options, const Context& context) {
  if (!options.timeline.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "--timeline shows what ranks do beside each other; this run is one process");
  }
  check_outputs(options);
  const Training training(options, context);
  train::Session session(training.workload, training.recorded, training.plan, options.session);
  memory::reset_peak();
  TrainingReport report(training.plan, options.report);
  for (std::int64_t i = 0; i < options.report.num_steps; ++i) report.add(session.step());
  report.finish();
  Ending ending;
  ending.add_peak(memory::memory_use().peak_bytes - training.data_bytes,
                  memory::resident_peak_bytes(), training.plan);
  if (!options.save.empty()) {
    ending.add_weights(state_of(training.workload.model), options.save);
  }
  if (training.workload.evaluation) {
    const auto recording = training.record(graph::Mode::kEval);
    ending.add_evaluation(train::evaluate(training.workload, recording,
                                          training.plan.batch.microbatch, session.next_step()));
  }
  finish(context, report, std::move(ending));
  return 0;
}

/// Largest of a number over the ranks.
std::int64_t largest(const train::World& world, std::int64_t mine, const char* what) {
  std::int64_t result = 0;
  for (const std::string& text : train::gather(world, std::to_string(mine), what)) {
    result = std::max<std::int64_t>(result, std::stoll(text));
  }
  return result;
}

/// What ranks must have in common: else one would wait for what another does not do.
std::string shared_text(const Options& options) {
  return train::to_text(options.session) +
         fmt::format("steps {}\nsave {}\ntimeline {}\n", options.report.num_steps,
                     !options.save.empty(), !options.timeline.empty());
}

/// What was expected of a step, if the options name the profile that the plan was made from.
std::optional<timeline::Timeline> predicted_timeline(const Options& options,
                                                     const train::RankSession& session) {
  if (options.profile.empty()) return std::nullopt;
  const profile::Profile profile = profile::load(options.profile);
  const auto& expected = session.plan().profile_sha256;
  if (expected && *expected != profile::profile_sha256(profile)) {
    throw Error(ErrorKind::kInvalidArgument,
                options.profile + " is not the profile that the plan was made from");
  }
  const simulate::Forecast step =
      forecast(session.recording().graph, session.plan(), profile, topology::load(options.topology),
               options.session.optimizer);
  return simulate::predicted_timeline(step.program, step.simulation);
}

/// This rank's part.
int train_rank(const Options& options, const Context& context, const train::World& world) {
  if (world.rank() == 0) check_outputs(options);
  const Training training(options, context);
  train::require_same(world, layout::plan_sha256(training.plan), "plan or model");
  train::require_same(world, shared_text(options), "training options");
  train::check_memory(world, training.plan);
  std::optional<record::Recording> evaluation;
  if (training.workload.evaluation) evaluation = training.record(graph::Mode::kEval);
  train::RankSession session(world, training.workload, training.recorded, training.plan,
                             options.session);
  if (evaluation) train::check_evaluation(session, *evaluation);
  const auto predicted = predicted_timeline(options, session);
  memory::reset_peak();
  std::optional<TrainingReport> report;
  if (world.rank() == 0) report.emplace(training.plan, options.report);
  for (std::int64_t i = 0; i < options.report.num_steps; ++i) {
    const train::StepReport step = session.step();
    if (report) report->add(step);
  }
  if (report) report->finish();
  Ending ending;
  ending.add_peak(largest(world, memory::memory_use().peak_bytes - training.data_bytes, "peaks"),
                  largest(world, memory::resident_peak_bytes(), "peaks"), training.plan);
  if (!options.save.empty()) {
    const train::Tensors weights = train::gather_state(world, training.workload, session);
    if (report) ending.add_weights(weights, options.save);
  }
  if (!options.timeline.empty()) {
    std::vector<timeline::Timeline> timelines = {train::measured_timeline(world, session)};
    if (predicted) timelines.insert(timelines.begin(), *predicted);
    if (report) timeline::save(timelines, options.timeline);
  }
  if (evaluation) {
    ending.add_evaluation(train::evaluate_ranks(world, training.workload, session, *evaluation));
  }
  if (report) finish(context, *report, std::move(ending));
  return 0;
}

}  // namespace

Body add_train(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  options->report.num_steps = 100;
  options->plan.add_to(app, /*with_file=*/true);
  app.add_option("--ranks", options->plan.ranks,
                 "Processes to start here; as many as the plan has ranks where it is not given");
  app.add_flag("--serial", options->serial, "Run all stages in this process, one after the other");
  app.add_option("--steps", options->report.num_steps)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--log-every", options->report.log_every, "Steps between printed lines")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--metrics", options->report.metrics_file, "Write a JSON line per step here");
  app.add_option("--save", options->save, "Write the trained weights to this safetensors file");
  app.add_option("--timeline", options->timeline,
                 "Write a Chrome trace of the last step to this file");
  app.add_option("--profile", options->profile,
                 "Profile that the plan was made from: puts the predicted step into the timeline");
  app.add_option("--topology", options->topology, "Topology that goes with it")
      ->capture_default_str();
  app.add_option("--drift-check-step", options->session.drift_check_step,
                 "Step at which the model is recorded again and compared; -1 for never")
      ->capture_default_str();
  add_optimizer_options(app, options->session.optimizer);
  app.footer("Example: trireme train --plan plan.json --steps 200 --save weights.safetensors");
  return [options, &context] {
    options->session.seed = context.seed;
    options->report.json = context.json;
    if (options->serial) return train_serially(*options, context);
    return run_ranks(context, options->plan.num_ranks(), [&](const ConnectedWorld* world) {
      return world == nullptr ? train_serially(*options, context)
                              : train_rank(*options, context, world->world());
    });
  };
}

}  // namespace trireme::command
