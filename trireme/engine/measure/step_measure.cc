#include "trireme/engine/measure/step_measure.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <vector>

#include "trireme/engine/program/boundary.h"
#include "trireme/kernels/reduce/fold.h"

namespace trireme::measure {
namespace {

constexpr std::int64_t kNumElements = std::int64_t{1} << 20;

}  // namespace

profile::StepCosts measure_step(const UpdateFunction& update, const RepeatOptions& options,
                                const BusyRanks& ranks) {
  const at::NoGradGuard no_grad;
  const at::Tensor value = at::full({kNumElements}, 0.5), gradient = at::full_like(value, 1e-3);
  const at::Tensor sum = at::zeros_like(value);
  const auto ns_per_element = [&](const std::function<void()>& work) {
    ranks.barrier();
    const Timing timing = time_repeats(options, [] {}, work);
    return timing.median_us * 1000 / static_cast<double>(kNumElements);
  };
  std::vector<double> costs;
  costs.push_back(ns_per_element([&] { update(value, gradient); }));
  costs.push_back(ns_per_element([&] {
    kernels::fold(kernels::FoldStep::kNext, gradient.const_data_ptr<float>(),
                  sum.mutable_data_ptr<float>(), kNumElements);
  }));
  costs.push_back(ns_per_element([&] { program::copy_span(gradient, sum); }) / sizeof(float));
  costs = ranks.medians(costs);
  return {.optimizer_ns = costs[0], .fold_ns = costs[1], .copy_ns_per_byte = costs[2]};
}

}  // namespace trireme::measure
