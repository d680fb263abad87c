#include "trireme/engine/measure/step_measure.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <vector>

#include "trireme/engine/program/boundary.h"
#include "trireme/kernels/reduce/fold.h"

namespace trireme::measure {
namespace {

constexpr std::int64_t kNumElements = std::int64_t{4} << 20;

/// `work` on each part of `cold` that is of the size of `like`.
void for_parts(const at::Tensor& cold, const at::Tensor& like,
               const std::function<void(const at::Tensor&)>& work) {
  for (const at::Tensor& part : cold.split(like.numel())) work(part);
}

}  // namespace

profile::StepCosts measure_step(const UpdateFunction& update, const RepeatOptions& options,
                                const BusyRanks& ranks) {
  const at::NoGradGuard no_grad;
  const at::Tensor value = at::full({kNumElements}, 0.5), gradient = at::full_like(value, 1e-3);
  const at::Tensor one = gradient.narrow(0, 0, kNumElements / 4).clone();
  const at::Tensor boundary = gradient.narrow(0, 0, kNumElements / 16).clone();
  const at::Tensor cold = at::zeros({4 * kNumElements});
  const auto measure = [&](const at::Tensor& memory, const std::function<void()>& work) {
    ranks.barrier();
    const Timing timing = time_repeats(options, [] {}, work);
    return timing.median_us * 1000 / static_cast<double>(memory.numel());
  };
  const auto fold_parts = [&] {
    for_parts(cold, one, [&](const at::Tensor& sum) {
      kernels::fold(kernels::FoldStep::kNext, one.const_data_ptr<float>(),
                    sum.mutable_data_ptr<float>(), sum.numel());
    });
  };
  const auto copy_parts = [&] {
    for_parts(cold, boundary,
              [&](const at::Tensor& message) { program::copy_span(boundary, message); });
  };
  std::vector<double> costs = {measure(value, [&] { update(value, gradient); }),
                               measure(cold, fold_parts),
                               measure(cold, copy_parts) / sizeof(float)};
  costs = ranks.medians(costs);
  return {.optimizer_ns = costs[0], .fold_ns = costs[1], .copy_ns_per_byte = costs[2]};
}

}  // namespace trireme::measure
