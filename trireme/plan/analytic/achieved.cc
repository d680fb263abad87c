#include "trireme/plan/analytic/achieved.h"

namespace trireme::analytic {
namespace {

/// Parts of a device, with those of programs that `trireme validate benchmarks/simulator/runs.csv --calibrate all` prints.
AchievedParts with(const std::array<double, 4>& device) {
  AchievedParts parts;
  parts.f8 = 0.898;
  parts.fused_attention = 0.555;
  parts.attention_backward = 2.29;
  parts.score_products = 0.962;
  parts.small_backward = 1.6;
  parts.eager = 2.39;
  parts.weight_sums = 0.565;
  parts.hidden_sharding = 0.464;
  parts.hidden_reduction = 0.315;
  parts.hidden_tensor = 0.571;
  parts.latency_us = 11.6;
  parts.step_ms = 27.8;
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
      {"", with({0.698, 0.819, 0.721, 0.700})},
      {"A100-40", with({0.791, 0.898, 0.728, 0.742})},
      {"A100-80", with({0.769, 0.818, 0.745, 0.700})},
      {"B200", with({0.618, 0.768, 0.701, 0.685})},
      {"GB200", with({0.575, 0.745, 0.646, 0.697})},
      {"GB300", with({0.685, 0.802, 0.730, 0.700})},
      {"H100", with({0.730, 0.610, 0.908, 0.674})},
      {"H100-96", with({0.579, 0.713, 0.651, 0.675})},
      {"V100-32", with({0.638, 1.000, 0.640, 0.678})},
      {"V100-SXM3", with({0.814, 0.969, 0.742, 0.700})},
  };
  return kAll;
}

}  // namespace trireme::analytic
