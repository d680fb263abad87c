#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <utility>
#include <vector>

#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"
#include "trireme/command/training_options.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/memory/block_allocator.h"
#include "trireme/engine/record/convert.h"
#include "trireme/engine/train/construct.h"
#include "trireme/engine/train/session.h"

namespace trireme::command {
namespace {

struct Options {
  PlanOptions plan;
  std::int64_t num_steps = 100;
  std::int64_t log_every = 10;
  std::string save;
  train::SessionOptions session;
};

std::string losses_text(const program::StepLosses& losses) {
  std::string text = fmt::format("loss {:.6f}", losses.total());
  if (losses.losses.size() < 2) return text;
  for (const program::LossTotal& one : losses.losses) {
    text += fmt::format(", {} {:.6f}", one.name, one.mean());
  }
  return text;
}

Json losses_json(const program::StepLosses& losses) {
  Json json = {{"loss", losses.total()}};
  for (const program::LossTotal& one : losses.losses) json["by_name"][one.name] = one.mean();
  return json;
}

/// Registered parameters and buffers by name.
void save_weights(const Model& model, const std::string& path) {
  std::vector<safetensors::Tensor> tensors;
  std::deque<std::vector<std::byte>> data;  // a deque, since the tensors are views of its elements
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      if (!tensor.defined()) continue;
      data.push_back(record::to_bytes(tensor));
      tensors.push_back(
          {name, record::to_dtype(tensor.scalar_type()), tensor.sizes().vec(), data.back()});
    }
  }
  write_file_atomically(path, safetensors::to_bytes(std::move(tensors)));
}

/// Prints a step as a line of text, or of JSON where that was asked for.
void report(const Context& context, const train::StepReport& step, std::int64_t batch) {
  const double rate = static_cast<double>(batch) / step.seconds;
  if (context.json) {
    Json json = losses_json(step.losses);
    json["step"] = step.step;
    json["samples_per_s"] = rate;
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("step {:>6}  {}  {:.0f} samples/s\n", step.step, losses_text(step.losses), rate);
  }
  std::fflush(stdout);
}

double median(std::vector<double> items) {
  if (items.empty()) return 0;
  std::nth_element(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(items.size() / 2),
                   items.end());
  return items[items.size() / 2];
}

int train_workload(const Options& options, const Context& context) {
  const Workload workload = train::construct(context.workload(), context.seed);
  const train::BatchReader reader(workload.training, workload.model);
  const auto recorded = record::record(workload.model, reader.maker(), graph::Mode::kTrain);
  const layout::Plan plan = options.plan.plan_for(recorded.graph);
  train::SessionOptions session_options = options.session;
  session_options.seed = context.seed;
  train::Session session(workload, recorded, plan, session_options);
  memory::reset_peak();
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < options.num_steps; ++i) {
    const train::StepReport step = session.step();
    seconds.push_back(step.seconds);
    if (i % options.log_every == 0 || i + 1 == options.num_steps) {
      report(context, step, plan.batch.global_batch);
    }
  }
  Json end = {{"median_step_ms", median(seconds) * 1e3},
              {"peak_bytes", memory::memory_use().peak_bytes}};
  std::string text =
      fmt::format("median step {:.2f} ms, peak of live tensors {:.1f} MiB\n", median(seconds) * 1e3,
                  static_cast<double>(memory::memory_use().peak_bytes) / (1 << 20));
  if (workload.evaluation) {
    const auto eval = record::record(workload.model, reader.maker(), graph::Mode::kEval);
    const auto losses = train::evaluate(workload, eval, plan.batch.microbatch, session.next_step());
    end["evaluation"] = losses_json(losses);
    text += "evaluation  " + losses_text(losses) + "\n";
  }
  if (!options.save.empty()) {
    save_weights(workload.model, options.save);
    end["weights"] = options.save;
    text += "weights written to " + options.save + "\n";
  }
  fmt::print("{}", context.json ? end.dump() + "\n" : text);
  return 0;
}

}  // namespace

Body add_train(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  options->plan.add_to(app, /*with_file=*/true);
  app.add_option("--steps", options->num_steps)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--log-every", options->log_every, "Steps between printed lines")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--save", options->save, "Write the trained weights to this safetensors file");
  app.add_option("--drift-check-step", options->session.drift_check_step,
                 "Step at which the model is recorded again and compared; -1 for never")
      ->capture_default_str();
  add_optimizer_options(app, options->session.optimizer);
  app.footer("Example: trireme train --plan plan.json --steps 200 --save weights.safetensors");
  return [options, &context] { return train_workload(*options, context); };
}

}  // namespace trireme::command
