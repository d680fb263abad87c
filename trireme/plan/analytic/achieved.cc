#include "trireme/plan/analytic/achieved.h"

namespace trireme::analytic {
namespace {

/// Parts of a device, with those of programs that `trireme validate benchmarks/simulator/runs.csv --calibrate all` prints.
AchievedParts with(const std::array<double, 4>& device) {
  AchievedParts parts;
  parts.f8 = 0.897;
  parts.fused_attention = 0.552;
  parts.attention_backward = 2.3;
  parts.score_products = 0.949;
  parts.small_backward = 1.6;
  parts.eager = 2.4;
  parts.weight_sums = 0.531;
  parts.hidden_sharding = 0.472;
  parts.hidden_reduction = 0.49;
  parts.hidden_tensor = 0.541;
  parts.latency_us = 11.8;
  parts.step_ms = 27.6;
  parts.matrix = device[0];
  parts.memory = device[1];
  parts.link = device[2];
  parts.network = device[3];
  return parts;
}

}  // namespace

const std::array<AchievedField, kNumAchieved>& achieved_fields() {
  using A = AchievedParts;
  constexpr double kAny = 1e6;
  static const std::array<AchievedField, kNumAchieved> kFields = {{
      {"matrix", &A::matrix, true, 0.15, 1.0},
      {"memory", &A::memory, true, 0.3, 1.0},
      {"link", &A::link, true, 0.3, 1.0},
      {"network", &A::network, true, 0.3, 1.0},
      {"f8", &A::f8, false, 0.2, 1.4},
      {"fused_attention", &A::fused_attention, false, 0.3, 1.0},
      {"attention_backward", &A::attention_backward, false, 0.3, 6.0},
      {"score_products", &A::score_products, false, 0.3, 1.0},
      {"small_backward", &A::small_backward, false, 0.3, 4.0},
      {"eager", &A::eager, false, 0.5, 3.0},
      {"weight_sums", &A::weight_sums, false, 1.0, 1.0},
      {"hidden_sharding", &A::hidden_sharding, false, 0.7, 1.0},
      {"hidden_reduction", &A::hidden_reduction, false, 0.7, 1.0},
      {"hidden_tensor", &A::hidden_tensor, false, 0.5, 1.0},
      {"latency_us", &A::latency_us, false, 0.5, kAny},
      {"step_ms", &A::step_ms, false, 0.3, kAny},
  }};
  return kFields;
}

const AchievedParts& achieved_of(const AchievedByDevice& all, std::string_view device) {
  static const AchievedParts kNone;
  auto found = all.find(device);
  if (found == all.end()) found = all.find(std::string_view());
  return found == all.end() ? kNone : found->second;
}

bool is_fitted(std::string_view device) {
  return !device.empty() && usual_achieved().contains(device);
}

/// What `trireme validate benchmarks/simulator/runs.csv --calibrate` of all groups fits, 2026-11-28.
const AchievedByDevice& usual_achieved() {
  static const AchievedByDevice kAll = {
      {"", with({0.698, 0.829, 0.721, 0.672})},
      {"A100-40", with({0.791, 0.913, 0.723, 0.714})},
      {"A100-80", with({0.768, 0.829, 0.745, 0.682})},
      {"B200", with({0.621, 0.781, 0.708, 0.659})},
      {"GB200", with({0.572, 0.757, 0.643, 0.671})},
      {"GB300", with({0.685, 0.811, 0.728, 0.672})},
      {"H100", with({0.736, 0.614, 0.923, 0.625})},
      {"H100-96", with({0.578, 0.726, 0.647, 0.646})},
      {"V100-32", with({0.641, 1.000, 0.641, 0.650})},
      {"V100-SXM3", with({0.820, 0.963, 0.746, 0.672})},
  };
  return kAll;
}

}  // namespace trireme::analytic
