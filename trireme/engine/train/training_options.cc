#include "trireme/engine/train/training_options.h"

#include "trireme/base/error.h"
#include "trireme/base/json.h"

namespace trireme::train {
namespace {

[[noreturn]] void refuse(const OptimizerOptions& options) {
  throw Error(ErrorKind::kInvalidArgument,
              "no optimizer is called '" + options.name + "'; there are adamw and sgd");
}

}  // namespace

std::unique_ptr<optim::Optimizer> make_optimizer(const OptimizerOptions& options) {
  if (options.name == "adamw") return optim::make_adamw({.weight_decay = options.weight_decay});
  if (options.name == "sgd") {
    return optim::make_sgd({.momentum = options.momentum, .weight_decay = options.weight_decay});
  }
  refuse(options);
}

std::int64_t optimizer_bytes_per_element(const OptimizerOptions& options) {
  if (options.name == "adamw") return 8;
  if (options.name == "sgd") return options.momentum == 0 ? 0 : 4;
  refuse(options);
}

double learning_rate_at(const OptimizerOptions& options, std::int64_t step) {
  if (step >= options.warmup_steps) return options.learning_rate;
  return options.learning_rate * static_cast<double>(step + 1) /
         static_cast<double>(options.warmup_steps);
}

std::string to_text(const SessionOptions& options) {
  const OptimizerOptions& o = options.optimizer;
  const Json json = {{"seed", options.seed},
                     {"optimizer", o.name},
                     {"learning_rate", o.learning_rate},
                     {"warmup_steps", o.warmup_steps},
                     {"momentum", o.momentum},
                     {"weight_decay", o.weight_decay},
                     {"clip_norm", o.clip_norm},
                     {"drift_check_step", options.drift_check_step}};
  std::string text;
  for (const auto& [name, value] : json.items()) text += name + " " + value.dump() + "\n";
  return text;
}

}  // namespace trireme::train
