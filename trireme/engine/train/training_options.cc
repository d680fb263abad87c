#include "trireme/engine/train/training_options.h"

#include <algorithm>
#include <cmath>

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
  const auto done = static_cast<double>(step + 1);
  const auto warmup = static_cast<double>(std::max<std::int64_t>(options.warmup_steps, 1));
  if (done < warmup) return options.learning_rate * done / warmup;
  if (options.decay == "none") return options.learning_rate;
  if (options.decay == "inverse_sqrt") return options.learning_rate * std::sqrt(warmup / done);
  throw Error(ErrorKind::kInvalidArgument,
              "no decay is called '" + options.decay + "'; there are none and inverse_sqrt");
}

std::map<std::string, std::string> facts_of(const SessionOptions& options) {
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
  return facts;
}

std::string to_text(const SessionOptions& options) {
  std::string text;
  for (const auto& [name, value] : facts_of(options)) text += name + " " + value + "\n";
  return text + "drift_check_step " + std::to_string(options.drift_check_step) + "\n";
}

}  // namespace trireme::train
