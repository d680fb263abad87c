#include "trireme/engine/train/learning_rate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "trireme/error.h"

namespace trireme::train {
namespace {

struct Decay {
  std::string_view name;
  bool ends;  ///< At decay_steps.
};

constexpr std::array kDecays = {Decay{"none", false}, Decay{"inverse_sqrt", false},
                                Decay{"linear", true}, Decay{"cosine", true},
                                Decay{"polynomial", true}};

[[noreturn]] void refuse_rate(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, problem);
}

const Decay& decay_of(const OptimizerOptions& options) {
  const auto found = std::ranges::find(kDecays, options.decay, &Decay::name);
  if (found != kDecays.end()) return *found;
  refuse_rate("no decay is called '" + options.decay + "'; there are " + decay_names());
}

double shape(const OptimizerOptions& options, double t) {
  if (options.decay == "cosine") return (1 + std::cos(std::numbers::pi * t)) / 2;
  return options.decay == "linear" ? 1 - t : std::pow(1 - t, options.decay_power);
}

double of_caller(const OptimizerOptions& options, std::int64_t step) {
  const double factor = options.rate_schedule(step);
  if (factor >= 0 && std::isfinite(factor)) return options.learning_rate * factor;
  refuse_rate("the schedule gives " + std::to_string(factor) + " for step " + std::to_string(step) +
              "; expected a factor of 0 or more for the learning rate");
}

}  // namespace

std::string decay_names() {
  std::string names;
  for (const Decay& decay : kDecays) {
    const bool is_last = &decay == &kDecays.back();
    names += (names.empty() ? "" : is_last ? " and " : ", ") + std::string(decay.name);
  }
  return names;
}

void check_schedule(const OptimizerOptions& options) {
  const Decay& decay = decay_of(options);
  if (options.rate_schedule && (decay.name != "none" || options.warmup_steps > 0)) {
    refuse_rate("a schedule of your own is the whole of it; leave out decay and warm-up");
  }
  if (options.warmup_steps < 0 || options.hold_steps < 0) {
    refuse_rate(
        "the numbers of warm-up steps and of steps that the rate is held must be 0 or more, are " +
        std::to_string(options.warmup_steps) + " and " + std::to_string(options.hold_steps));
  }
  if (options.hold_steps > 0 && !decay.ends) {
    refuse_rate("the decay '" + options.decay +
                "' holds no rate; take linear, cosine or polynomial");
  }
  if (decay.ends && options.decay_steps <= options.warmup_steps + options.hold_steps) {
    refuse_rate(
        "the decay '" + options.decay + "' needs the step at which it ends, after the " +
        std::to_string(options.warmup_steps + options.hold_steps) +
        " of warm-up and hold; give --decay-steps, as a rule the steps of the whole training");
  }
  if (!(options.decay_power > 0) || !std::isfinite(options.decay_power)) {
    refuse_rate("the power of a decay must be positive, is " + std::to_string(options.decay_power));
  }
  if (!(options.final_rate >= 0 && options.final_rate <= 1)) {
    refuse_rate("the part of the rate that is left must be from 0 to 1, is " +
                std::to_string(options.final_rate));
  }
}

double learning_rate_at(const OptimizerOptions& options, std::int64_t step) {
  if (options.rate_schedule) return of_caller(options, step);
  const std::int64_t warmup = options.warmup_steps;
  const auto done = static_cast<double>(step + 1);
  if (step + 1 < warmup) return options.learning_rate * done / static_cast<double>(warmup);
  if (step < warmup) return options.learning_rate;
  if (options.decay == "none") return options.learning_rate;
  if (options.decay == "inverse_sqrt") {
    return options.learning_rate *
           std::sqrt(static_cast<double>(std::max<std::int64_t>(warmup, 1)) / done);
  }
  decay_of(options);
  const std::int64_t begin = warmup + options.hold_steps;
  const double t =
      static_cast<double>(step - begin) / static_cast<double>(options.decay_steps - begin);
  const double left = shape(options, std::clamp(t, 0.0, 1.0));
  return options.learning_rate * (options.final_rate + (1 - options.final_rate) * left);
}

}  // namespace trireme::train
