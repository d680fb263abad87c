#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "trireme/arguments/numbers.h"
#include "trireme/arguments/words.h"
#include "trireme/engine/train/learning_rate.h"
#include "trireme/engine/train/parameter_groups.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/engine/train/turns.h"

namespace trireme::command {

/// What a step is played by: --plan, --graph, --profile, --topology.
struct StepFiles {
  std::string plan = "plan.json";
  std::string graph = "train.graph.json";
  std::string profile = "profile.json";
  std::string topology = "topology.json";

  void add_to(CLI::App& app) {
    app.add_option("--plan", plan, "Plan file")->capture_default_str();
    app.add_option("--graph", graph, "Graph that the plan is of")->capture_default_str();
    app.add_option("--profile", profile, "Profile of the graph")->capture_default_str();
    app.add_option("--topology", topology, "Where ranks run")->capture_default_str();
  }
};

/// --optimizer, --learning-rate and their like, for the verbs that update weights.
inline void add_optimizer_options(CLI::App& app, OptimizerOptions& options) {
  app.add_option("--optimizer", options.name, train::optimizer_names())->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate)->capture_default_str();
  app.add_option("--warmup-steps", options.warmup_steps, "Steps of linear warm-up")
      ->capture_default_str();
  app.add_option("--decay", options.decay, "Of the rate after the warm-up: " + train::decay_names())
      ->capture_default_str();
  app.add_option("--hold-steps", options.hold_steps,
                 "Steps of the full rate before linear, cosine or polynomial begins")
      ->capture_default_str();
  app.add_option("--decay-steps", options.decay_steps,
                 "Step at which these end: as a rule, of the whole training");
  app.add_option("--decay-power", options.decay_power, "Of polynomial")->capture_default_str();
  app.add_option("--final-rate", options.final_rate, "Part of the rate that these leave")
      ->capture_default_str();
  app.add_option("--momentum", options.momentum, "Of sgd and lars")->capture_default_str();
  app.add_option("--weight-decay", options.weight_decay)->capture_default_str();
  app.add_option("--beta1", options.beta1, "Of adamw, lamb and novograd");
  app.add_option("--beta2", options.beta2, "Likewise");
  app.add_option("--epsilon", options.epsilon, "Likewise");
  app.add_option_function<std::vector<std::string>>(
         "--group",
         [&options](const std::vector<std::string>& texts) {
           options.groups.clear();
           for (const std::string& text : texts) {
             options.groups.push_back(train::parse_parameter_group(text));
           }
         },
         "Parameters with names like PATTERN have a weight decay of their own, or a scale of the "
         "learning rate: '*.bias,weight-decay=0'; the last that fits counts")
      ->type_name("PATTERN,weight-decay=X,rate-scale=Y")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  app.add_option_function<std::vector<std::string>>(
         "--turn",
         [&options](const std::vector<std::string>& texts) {
           options.turns.clear();
           for (const std::string& text : texts) options.turns.push_back(train::parse_turn(text));
         },
         "Some steps move the parameters with names like PATTERN by that loss alone; then comes "
         "the next turn, and "
         "after the last the first: the players of a GAN")
      ->type_name("PATTERN,loss=NAME,steps=N")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  app.add_option("--average-decay", options.average_decay,
                 "Keep an exponential moving average of the weights (EMA), of this decay, for "
                 "--evaluate-average and `export --average`");
  app.add_option("--clip-norm", options.clip_norm, "Largest global gradient norm; 0 for none")
      ->capture_default_str();
}

/// --gradients.
inline void add_gradients_option(CLI::App& app, Dtype& gradient_dtype) {
  arguments::add_words<Dtype>(
      app, "--gradients", gradient_dtype,
      "bf16: sums of gradients are rounded so that replicas send half the bytes; other bits than "
      "f32, the same on any number of replicas",
      {{"f32", Dtype::kF32}, {"bf16", Dtype::kBf16}});
}

/// --evaluate-average.
inline void add_average_option(CLI::App& app, TrainingOptions& options) {
  app.add_flag("--evaluate-average", options.evaluate_average,
               "Evaluate the moving averages of the weights (--average-decay) in their place");
}

/// --reader-threads.
inline void add_reader_threads_option(CLI::App& app, TrainingOptions& options) {
  options.reader_threads = 0;
  app.add_option(
         "--reader-threads", options.reader_threads,
         "Threads of each rank that read and transform its samples ahead of the steps; 0: as "
         "many as the first steps show to be needed, or all its cores where nothing else "
         "runs meanwhile (evaluations, --reader-ranks)")
      ->check(arguments::not_negative())
      ->capture_default_str();
}

/// --optimize.
inline CLI::Option* add_objective_option(CLI::App& app, Objective& objective) {
  return app
      .add_option_function<std::string>(
          "--optimize",
          [&objective](const std::string& text) {
            objective = text == "memory" ? Objective::kMemory
                        : text == "cost" ? Objective::kCost
                                         : Objective::kSpeed;
          },
          "speed: least step time; memory: least peak; cost: least ranks x step time")
      ->check(CLI::IsMember({"speed", "memory", "cost"}))
      ->default_str("speed");
}

/// --max-slowdown.
inline CLI::Option* add_slowdown_option(CLI::App& app, double& max_slowdown) {
  return app
      .add_option("--max-slowdown", max_slowdown,
                  "With --optimize memory: a step may take so many times as long as the fastest")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
}

/// --tolerant.
inline void add_tolerant_option(CLI::App& app, bool& tolerant) {
  app.add_flag(
      "--tolerant", tolerant,
      "Take any number of replicas that divides the lanes, also where weights then differ in "
      "their last bits from those of other numbers");
}

/// --buffer; the texts are for train::parse_replica_policies.
inline void add_buffer_option(CLI::App& app, std::vector<std::string>& texts) {
  app.add_option(
         "--buffer", texts,
         "What replicas make of a buffer that the forward writes: first, average, or sum (of their "
         "changes); for each buffer once")
      ->type_name("NAME=POLICY")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

/// --threads
inline CLI::Option* add_threads_option(CLI::App& app, int& threads) {
  return app
      .add_option("--threads", threads,
                  "Threads that each rank computes with, on cores of its own; the last bits of "
                  "weights depend on it")
      ->check(arguments::positive())
      ->capture_default_str();
}

/// --device-memory, with or without a unit.
inline CLI::Option* add_device_memory_option(CLI::App& app, std::int64_t& bytes) {
  return app
      .add_option("--device-memory", bytes,
                  "What each rank may use, `2GiB`; else an equal part of its host's")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
}

}  // namespace trireme::command
