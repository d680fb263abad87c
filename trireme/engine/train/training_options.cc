#include "trireme/engine/train/training_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "trireme/base/json.h"
#include "trireme/engine/train/learning_rate.h"
#include "trireme/engine/train/parameter_groups.h"
#include "trireme/engine/train/turns.h"
#include "trireme/error.h"

namespace trireme::train {
namespace {

using MakeOptimizer = std::unique_ptr<parameters::Optimizer> (*)(const OptimizerOptions&);

struct KnownOptimizer {
  std::string_view name;
  MakeOptimizer make;
  std::int64_t bytes_per_element;  ///< Of state.
  bool has_betas = true;           ///< And an epsilon that is for people to set.
};

/// Sets of a kernel's options what the caller gave.
template <typename Kernel>
Kernel with_betas(Kernel kernel, const OptimizerOptions& o) {
  kernel.weight_decay = o.weight_decay;
  kernel.beta1 = o.beta1.value_or(kernel.beta1);
  kernel.beta2 = o.beta2.value_or(kernel.beta2);
  kernel.epsilon = o.epsilon.value_or(kernel.epsilon);
  return kernel;
}

constexpr std::array<KnownOptimizer, 7> kOptimizers = {{
    // Matrices keep rows and columns, next to nothing; vectors, which keep all, are few.
    {"adafactor",
     [](const auto& o) { return parameters::make_adafactor({.weight_decay = o.weight_decay}); }, 0,
     false},
    {"adamw",
     [](const auto& o) { return parameters::make_adamw(with_betas(kernels::AdamwOptions(), o)); },
     8},
    {"lamb",
     [](const auto& o) { return parameters::make_lamb(with_betas(kernels::LambOptions(), o)); }, 8},
    {"lars",
     [](const auto& o) {
       return parameters::make_lars({.momentum = o.momentum, .weight_decay = o.weight_decay});
     },
     4, false},
    {"novograd",
     [](const auto& o) {
       return parameters::make_novograd(with_betas(kernels::NovogradOptions(), o));
     },
     4},
    {"sgd",
     [](const auto& o) {
       return parameters::make_sgd({.momentum = o.momentum, .weight_decay = o.weight_decay});
     },
     4, false},
    // Its state is not ours; most that people bring keep two moments.
    {kOwnOptimizer, [](const auto&) { return parameters::make_own(); }, 8, false},
}};

/// By ReplicaPolicy.
constexpr std::array<std::string_view, 3> kPolicyNames = {"first", "average", "sum"};

const KnownOptimizer& find(const OptimizerOptions& options) {
  const auto* found = std::ranges::find(kOptimizers, options.name, &KnownOptimizer::name);
  if (found != kOptimizers.end()) return *found;
  throw Error(ErrorKind::kInvalidArgument,
              "no optimizer is called '" + options.name + "'; there are " + optimizer_names());
}

void check(const OptimizerOptions& options) {
  const auto require = [](bool holds, const char* name, const char* expected, double actual) {
    if (holds) return;
    throw Error(ErrorKind::kInvalidArgument,
                std::string(name) + " must be " + expected + ", is " + std::to_string(actual));
  };
  const auto is_number = [](double value) { return value >= 0 && std::isfinite(value); };
  require(is_number(options.learning_rate) &&
              options.learning_rate <= std::numeric_limits<float>::max(),
          "the learning rate", "a number from 0 to 3.4e38", options.learning_rate);
  require(is_number(options.momentum), "the momentum", "a number of 0 or more", options.momentum);
  require(is_number(options.weight_decay), "the weight decay", "a number of 0 or more",
          options.weight_decay);
  require(is_number(options.clip_norm), "the norm to which gradients are clipped",
          "a positive number, or 0 for none", options.clip_norm);
  const auto is_part = [](const std::optional<double>& beta) {
    return !beta || (*beta >= 0 && *beta < 1);
  };
  require(is_part(options.average_decay), "the decay of the average", "from 0 to below 1",
          options.average_decay);
  require(is_part(options.beta1), "beta1", "from 0 to below 1", options.beta1.value_or(0));
  require(is_part(options.beta2), "beta2", "from 0 to below 1", options.beta2.value_or(0));
  require(is_number(options.epsilon.value_or(0)), "epsilon", "a number of 0 or more",
          options.epsilon.value_or(0));
  if ((options.beta1 || options.beta2 || options.epsilon) && !find(options).has_betas) {
    throw Error(ErrorKind::kInvalidArgument,
                "the optimizer '" + options.name +
                    "' has no beta1, beta2 and epsilon to set; leave them "
                    "out, or take adamw, lamb or novograd");
  }
  check_schedule(options);
}

}  // namespace

std::string optimizer_names() {
  std::string names;
  const std::span named(kOptimizers.begin(), kOptimizers.size() - 1);  // without kOwnOptimizer
  for (const KnownOptimizer& one : named) {
    const bool is_last = &one == &named.back();
    names += (names.empty() ? "" : is_last ? " and " : ", ") + std::string(one.name);
  }
  return names;
}

std::unique_ptr<parameters::Optimizer> make_optimizer(const OptimizerOptions& options) {
  check(options);
  auto optimizer = find(options).make(options);
  optimizer->set_average(options.average_decay);
  return optimizer;
}

std::int64_t optimizer_bytes_per_element(const OptimizerOptions& options) {
  const KnownOptimizer& known = find(options);
  const std::int64_t average = options.average_decay > 0 ? 4 : 0;
  return average + (known.name == "sgd" && options.momentum == 0 ? 0 : known.bytes_per_element);
}

data::OrderKind order_of(const TrainingOptions& options) {
  return options.shuffled ? data::OrderKind::kShuffled : data::OrderKind::kSequential;
}

std::string to_text(ReplicaPolicy policy) {
  return std::string(kPolicyNames[static_cast<std::size_t>(policy)]);
}

ReplicaPolicies parse_replica_policies(const std::vector<std::string>& texts) {
  ReplicaPolicies policies;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    const auto policy = equals == std::string::npos || equals == 0
                            ? kPolicyNames.end()
                            : std::ranges::find(kPolicyNames, text.substr(equals + 1));
    if (policy == kPolicyNames.end()) {
      throw Error(ErrorKind::kInvalidArgument,
                  "'" + text +
                      "' says nothing about a buffer; expected NAME=first, NAME=average "
                      "or NAME=sum");
    }
    const std::string name = text.substr(0, equals);
    const auto value = static_cast<ReplicaPolicy>(policy - kPolicyNames.begin());
    if (!policies.emplace(name, value).second) {
      throw Error(ErrorKind::kInvalidArgument, "buffer '" + name + "' is given two policies");
    }
  }
  return policies;
}

Dtype checked_gradient_dtype(const TrainingOptions& options) {
  const Dtype dtype = options.gradient_dtype;
  if (dtype == Dtype::kF32 || dtype == Dtype::kBf16) return dtype;
  throw Error(ErrorKind::kInvalidArgument, "gradients are summed as f32 or bf16, not as " +
                                               std::string(trireme::to_text(dtype)));
}

bool needs_norm(const TrainingOptions& options) {
  return options.optimizer.clip_norm > 0 || !options.allow_nonfinite ||
         options.loss_scale.initial > 0;
}

bool checks_drift(const TrainingOptions& options, std::int64_t step) {
  return std::ranges::find(options.drift_check_steps, step) != options.drift_check_steps.end();
}

namespace {

/// Facts of options that checkpoints need not know where they are as they always were.
void add_if_set(const OptimizerOptions& o, std::map<std::string, std::string>& facts) {
  const auto add = [&](const char* name, bool is_set, const Json& value) {
    if (is_set) facts[name] = value.dump();
  };
  add("hold_steps", o.hold_steps != 0, o.hold_steps);
  add("decay_steps", o.decay_steps != 0, o.decay_steps);
  add("decay_power", o.decay_power != 1, o.decay_power);
  add("final_rate", o.final_rate != 0, o.final_rate);
  add("beta1", o.beta1.has_value(), o.beta1.value_or(0));
  add("beta2", o.beta2.has_value(), o.beta2.value_or(0));
  add("epsilon", o.epsilon.has_value(), o.epsilon.value_or(0));
  add("average_decay", o.average_decay != 0, o.average_decay);
  if (o.rate_schedule) facts["rate_schedule"] = "the caller's";
  std::string groups;
  for (const ParameterGroup& group : o.groups)
    groups += (groups.empty() ? "" : " ") + to_text(group);
  if (!groups.empty()) facts["groups"] = groups;
  std::string turns;
  for (const Turn& turn : o.turns) turns += (turns.empty() ? "" : " ") + to_text(turn);
  if (!turns.empty()) facts["turns"] = turns;
}

}  // namespace

std::map<std::string, std::string> facts_of(const TrainingOptions& options) {
  const OptimizerOptions& o = options.optimizer;
  const Json json = {{"seed", options.seed},
                     {"optimizer", o.name},
                     {"learning_rate", o.learning_rate},
                     {"warmup_steps", o.warmup_steps},
                     {"decay", o.decay},
                     {"momentum", o.momentum},
                     {"weight_decay", o.weight_decay},
                     {"clip_norm", o.clip_norm}};
  std::map<std::string, std::string> facts;
  for (const auto& [name, value] : json.items()) {
    facts[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  add_if_set(o, facts);
  if (options.loss_scale.initial > 0) {
    facts["loss_scale"] = Json(options.loss_scale.initial).dump() + ", doubled after " +
                          std::to_string(options.loss_scale.growth_steps);
  }
  std::string buffers;
  for (const auto& [name, policy] : options.buffers) {
    buffers += (buffers.empty() ? "" : " ") + name + "=" + to_text(policy);
  }
  if (!buffers.empty()) facts["buffers"] = buffers;
  if (options.gradient_dtype != Dtype::kF32) {
    facts["gradient_dtype"] = trireme::to_text(options.gradient_dtype);
  }
  if (!options.shuffled) facts["order"] = "as they lie";
  return facts;
}

program::Capture capture_of(const TrainingOptions& options) {
  return options.capture ? program::Capture::kOn : program::Capture::kOff;
}

std::filesystem::path offload_folder(const TrainingOptions& options) {
  return options.offload_folder.empty() ? std::filesystem::temp_directory_path()
                                        : options.offload_folder;
}

std::string to_text(const TrainingOptions& options) {
  std::string text;
  for (const auto& [name, value] : facts_of(options)) text += name + " " + value + "\n";
  text += "drift_check_steps";
  for (const std::int64_t step : options.drift_check_steps) text += " " + std::to_string(step);
  return text + "\nallow_nonfinite " + (options.allow_nonfinite ? "yes" : "no") + "\ntolerant " +
         (options.tolerant ? "yes" : "no") + "\nevaluate_average " +
         (options.evaluate_average ? "yes" : "no") + "\n";
}

}  // namespace trireme::train
