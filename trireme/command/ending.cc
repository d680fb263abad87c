#include "trireme/command/ending.h"

#include <fmt/format.h>

#include "trireme/command/weights_file.h"
#include "trireme/plan/layout/peak.h"

namespace trireme::command {

void Ending::add_peak(std::int64_t bytes, std::int64_t resident, const layout::Plan& plan) {
  json_["peak_bytes"] = bytes;
  json_["resident_peak_bytes"] = resident;
  text_ += fmt::format("peak of live tensors {:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  if (plan.prediction) {
    const std::int64_t predicted = layout::largest_peak_bytes(plan.prediction->peak_bytes);
    json_["predicted_peak_bytes"] = predicted;
    text_ += fmt::format(" (predicted {:.1f})", static_cast<double>(predicted) / (1 << 20));
  }
  text_ += fmt::format(", of the process {:.0f} MiB\n", static_cast<double>(resident) / (1 << 20));
}

void Ending::add_weights(const train::Tensors& weights, const std::string& path) {
  save_weights(weights, path);
  json_["weights"] = path;
  text_ += "weights written to " + path + "\n";
}

void Ending::add_evaluation(const program::StepLosses& losses) {
  json_["evaluation"] = losses_json(losses);
  text_ += "evaluation  " + losses_text(losses) + "\n";
}

void Ending::add_file(const std::string& name, const std::string& path) {
  json_[name] = path;
  text_ += fmt::format("{}  {}\n", name, path);
}

void Ending::print(const Context& context, const TrainingReport& report) {
  const double median = report.median_step_ms();
  json_["median_step_ms"] = median;
  fmt::print("{}", context.json ? json_.dump() + "\n"
                                : fmt::format("median step {:.2f} ms, ", median) + text_);
}

}  // namespace trireme::command
