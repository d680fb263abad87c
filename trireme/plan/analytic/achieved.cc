#include "trireme/plan/analytic/achieved.h"

namespace trireme::analytic {

const std::array<AchievedField, kNumAchieved>& achieved_fields() {
  using A = AchievedParts;
  constexpr double kAny = 1e6;
  static const std::array<AchievedField, kNumAchieved> fields = {{
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
      {"step_ms", &A::step_ms, false, 1.0, kAny},
  }};
  return fields;
}

const AchievedParts& achieved_of(const AchievedByDevice& all, std::string_view device) {
  static const AchievedParts none;
  auto found = all.find(device);
  if (found == all.end()) found = all.find(std::string_view());
  return found == all.end() ? none : found->second;
}

const AchievedByDevice& usual_achieved() {
  static const AchievedByDevice all = {{"", AchievedParts{}}};
  return all;
}

}  // namespace trireme::analytic
