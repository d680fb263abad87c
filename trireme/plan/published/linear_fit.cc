#include "trireme/plan/published/linear_fit.h"

#include <algorithm>

#include "trireme/error.h"
#include "trireme/plan/published/least_squares.h"

namespace trireme::published {

using analytic::RecomputeKind;
using analytic::ShardingKind;

std::array<double, kNumFeatures> features(const RunCase& one) {
  const analytic::TrainLayout& layout = one.layout;
  const analytic::Machine& machine = one.machine;
  const auto devices = static_cast<double>(layout.num_devices());
  const auto m = static_cast<double>(layout.num_microbatches());
  const auto tensor = static_cast<double>(layout.tensor);
  const auto stages = static_cast<double>(layout.pipeline);
  const auto replicas = static_cast<double>(layout.data * layout.context);
  const bool is_full = layout.recompute == RecomputeKind::kFull;
  const double products = analytic::model_flops(one.shape, layout.seq_len) *
                          static_cast<double>(layout.global_batch) * (is_full ? 4.0 / 3 : 1) /
                          devices / machine.accelerator.flops(layout.type);
  const double parameters = static_cast<double>(analytic::parameters(one.shape)) / tensor / stages;
  const double tokens = layout.tokens() * m;  // That a rank sees in a step.
  const double hidden = static_cast<double>(std::max<std::int64_t>(one.shape.hidden, 1));
  const double blocks = static_cast<double>(one.shape.num_blocks()) / stages;
  const bool is_wide = layout.tensor > machine.devices_per_host;
  const double tensor_rate = is_wide ? machine.network_share() : machine.link_bytes_per_s;
  const double updated =
      layout.sharding == ShardingKind::kNone ? parameters : parameters / replicas;
  const double gathered = layout.sharding >= ShardingKind::kGradients ? m * parameters : 0;
  return {products,
          products * (stages - 1) / (m * static_cast<double>(layout.virtual_stages)),
          tokens * hidden * blocks / machine.accelerator.memory_bytes_per_s,
          (tensor - 1) / tensor * tokens * hidden * blocks / tensor_rate,
          (replicas - 1) / replicas * parameters / machine.network_share(),
          stages > 1 ? tokens * hidden / tensor * static_cast<double>(layout.virtual_stages) /
                           machine.network_share()
                     : 0,
          updated / machine.accelerator.memory_bytes_per_s + gathered / machine.link_bytes_per_s,
          1};
}

LinearFit::LinearFit(std::span<const RunCase> cases) {
  if (cases.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "there is no run to fit; name other groups");
  }
  Matrix matrix(kNumFeatures, std::vector<double>(kNumFeatures));
  std::vector<double> side(kNumFeatures);
  for (const RunCase& one : cases) {
    const auto x = features(one);
    for (std::size_t a = 0; a < kNumFeatures; ++a) {
      side[a] += x[a] / one.step_s;
      for (std::size_t b = 0; b < kNumFeatures; ++b) {
        matrix[a][b] += x[a] * x[b] / (one.step_s * one.step_s);
      }
    }
  }
  // Features that no case has get no weight.
  for (std::size_t a = 0; a < kNumFeatures; ++a) matrix[a][a] = matrix[a][a] * (1 + 1e-9) + 1e-12;
  std::ranges::copy(solve(matrix, side), weights_.begin());
}

double LinearFit::predict(const RunCase& one) const {
  double sum = 0;
  const auto x = features(one);
  for (std::size_t i = 0; i < kNumFeatures; ++i) sum += weights_[i] * x[i];
  return std::max(sum, 1e-6);
}

}  // namespace trireme::published
