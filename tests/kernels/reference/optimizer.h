#pragma once

#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/sgd.h"

namespace trireme::kernels::reference {

/// As kernels/optimizer/sgd.h and adamw.h for one element, written as the formulas are; for tests.
void sgd(const SgdOptions& options, bool first_step, float gradient, float& buffer,
         float& parameter);
void sgd(const SgdOptions& options, bool first_step, double gradient, double& buffer,
         double& parameter);
void sgd(const SgdOptions& options, bool first_step, float gradient, Bf16& buffer,
         float& parameter);

void adamw(const AdamwOptions& options, std::int64_t step, float gradient, float& exp_avg,
           float& exp_avg_sq, float& parameter);
void adamw(const AdamwOptions& options, std::int64_t step, double gradient, double& exp_avg,
           double& exp_avg_sq, double& parameter);
void adamw(const AdamwOptions& options, std::int64_t step, float gradient, Bf16& exp_avg,
           Bf16& exp_avg_sq, float& parameter);

/// Of element `index`, rounded at random.
void adamw(const AdamwOptions& options, std::int64_t step, std::uint64_t seed, std::int64_t index,
           Bf16 gradient, Bf16& exp_avg, Bf16& exp_avg_sq, Bf16& parameter);

}  // namespace trireme::kernels::reference
