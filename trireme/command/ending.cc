#include "trireme/command/ending.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "trireme/plan/graph/text_table.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/session/metrics_file.h"
#include "trireme/session/weights_file.h"

namespace trireme::command {
namespace {

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// `240.0 parameters, 12.5 activations`, in MiB, the most first.
std::string kinds_text(const std::map<std::string, std::int64_t>& kinds) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  for (const auto& [kind, bytes] : kinds) sorted.emplace_back(-bytes, kind);
  std::ranges::sort(sorted);
  std::string text;
  for (const auto& [bytes, kind] : sorted) {
    text += fmt::format("{}{:.1f} {}", text.empty() ? "" : ", ", mib(-bytes), kind);
  }
  return text;
}

/// A row for each place of the pipeline: of its ranks, the one that has most.
std::string peaks_text(const Measured& measured, const layout::Plan& plan) {
  const layout::Role& role = layout::train_role(plan);
  graph::Table table(
      {">rank", ">stages", ">predicted MiB", ">measured MiB", ">process MiB", "predicted by kind"});
  for (int position = 0; position < role.mesh.pipeline; ++position) {
    const auto begin =
        role.placement.begin() + static_cast<std::ptrdiff_t>(position) * role.mesh.data;
    const int rank = *std::max_element(begin, begin + role.mesh.data, [&](int a, int b) {
      return measured.peak_bytes[a] < measured.peak_bytes[b];
    });
    const auto& kinds = plan.prediction->peak_bytes[rank];
    table.add({std::to_string(rank),
               fmt::format("{}", fmt::join(layout::stages_at(plan, position), " ")),
               fmt::format("{:.1f}", mib(layout::largest_peak_bytes({kinds}))),
               fmt::format("{:.1f}", mib(measured.peak_bytes[rank])),
               fmt::format("{:.0f}", mib(measured.resident_peak_bytes[rank])), kinds_text(kinds)});
  }
  return table.text();
}

}  // namespace

void Ending::add_measured(const Measured& measured, const layout::Plan& plan) {
  const std::int64_t peak = *std::ranges::max_element(measured.peak_bytes);
  const std::int64_t resident = *std::ranges::max_element(measured.resident_peak_bytes);
  const bool is_comparable =
      plan.prediction && plan.prediction->peak_bytes.size() == measured.peak_bytes.size();
  json_["median_step_ms"] = measured.median_step_ms;
  json_["peak_bytes"] = peak;
  json_["resident_peak_bytes"] = resident;
  text_ += fmt::format("median step {:.2f} ms", measured.median_step_ms);
  if (is_comparable) {
    const double predicted = plan.prediction->step_ms;
    json_["predicted_step_ms"] = predicted;
    json_["predicted_peak_bytes"] = layout::largest_peak_bytes(plan.prediction->peak_bytes);
    text_ += fmt::format(" (predicted {:.2f}", predicted);
    if (const auto over_profile = measured.compute_over_profile) {
      json_["compute_over_profile"] = *over_profile;
      text_ += fmt::format("; forwards and backwards took {:.2f} of their time in the profile",
                           *over_profile);
    }
    text_ += ")";
  }
  text_ += fmt::format(", peak of live tensors {:.1f} MiB, of the process {:.0f} MiB\n", mib(peak),
                       mib(resident));
  if (is_comparable) text_ += peaks_text(measured, plan);
}

void Ending::add_stop(const Stop& stop) {
  json_["stopped_at"] = stop.done;
  text_ += fmt::format("stopped after {} of {} steps by {}{}\n", stop.done, stop.num_steps,
                       stop.reason, stop.can_resume ? "; --resume trains the rest" : "");
}

void Ending::add_weights(const train::Tensors& weights, const std::string& path) {
  session::save_weights(weights, path);
  json_["weights"] = path;
  text_ += "weights written to " + path + "\n";
}

void Ending::add_evaluation(const StepLosses& losses) {
  json_["evaluation"] = session::losses_json(losses);
  text_ += "evaluation  " + losses_text(losses) + "\n";
}

void Ending::add_file(const std::string& name, const std::string& path) {
  json_[name] = path;
  text_ += fmt::format("{}  {}\n", name, path);
}

void Ending::print(const Context& context) {
  fmt::print("{}", context.json ? json_.dump() + "\n" : text_);
}

}  // namespace trireme::command
