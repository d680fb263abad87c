#pragma once

// The passes of lamb, lars and novograd (optimizer.h). Formulas are those of their headers in
// optimizer/.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/kernels/cuda/optimizer_passes.h"
#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/norm/norm.h"
#include "trireme/kernels/optimizer/lamb.h"
#include "trireme/kernels/optimizer/lars.h"
#include "trireme/kernels/optimizer/novograd.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels::cuda::internal {

// ---- Norms

constexpr int kLanes = 16;

struct PlainValues {
  const float* x;
  TRIREME_HOST_DEVICE float operator()(std::int64_t i) const { return x[i]; }
};

/// Lane i % 16 of block i / 16: squares of what `values` gives, in f64.
template <typename Values>
struct SquareLanes {
  Values values;
  std::int64_t n;
  double* lanes;
  std::int64_t block = kNormBlock;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t begin = i / kLanes * block;
    const std::int64_t end = n - begin < block ? n : begin + block;
    double sum = 0;
    for (std::int64_t e = begin + i % kLanes; e < end; e += kLanes) {
      const auto value = static_cast<double>(values(e));
      sum += value * value;
    }
    lanes[i] = sum;
  }
};

/// The lanes of block i become its sum, in the first of them.
struct SquareBlocks {
  double* lanes;
  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const { tree_of_16(lanes + i * kLanes); }
};

/// Blocks are added from the left.
struct SquareNorm {
  const double* lanes;
  std::int64_t num_blocks;

  TRIREME_HOST_DEVICE double operator()() const {
    double total = 0;
    for (std::int64_t block = 0; block < num_blocks; ++block) total += lanes[block * kLanes];
    return total;
  }
};

/// Up to two norms of a tensor, and what follows from them.
struct LayerwiseWorkspace {
  LayerwiseWorkspace(Cutter cutter, std::int64_t n)
      : n(n),
        num_blocks(count_parts(n, kNormBlock)),
        first(cutter.take<double>(2 * num_blocks * kLanes)),
        second(first == nullptr ? nullptr : first + num_blocks * kLanes),
        factor(cutter.take<float>(1)),
        bytes(cutter.bytes()) {}

  SquareNorm first_norm() const { return {first, num_blocks}; }
  SquareNorm second_norm() const { return {second, num_blocks}; }

  std::int64_t n, num_blocks;
  double *first, *second;  ///< [num_blocks, 16]
  float* factor;           ///< [1]
  std::int64_t bytes;
};

inline LayerwiseWorkspace layerwise_workspace(const char* operation, std::span<std::byte> workspace,
                                              std::int64_t n) {
  const LayerwiseWorkspace cut(Cutter(workspace), n);
  check_workspace(operation, workspace, cut.bytes);
  return cut;
}

// ---- LAMB

template <typename State>
struct LambMoments {
  float beta1, beta2, rest1, rest2;
  const float* gradient;
  State* m;
  State* v;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const float g = gradient[i];
    put(beta1 * to_f32(m[i]) + rest1 * g, m[i]);
    put(beta2 * to_f32(v[i]) + rest2 * g * g, v[i]);
  }
};

/// u
template <typename State>
struct LambChange {
  float factor, inverse_root, epsilon, weight_decay;
  const State* m;
  const State* v;
  const float* parameter;

  TRIREME_HOST_DEVICE float operator()(std::int64_t i) const {
    const float deviation = square_root(to_f32(v[i])) * inverse_root + epsilon;
    return to_f32(m[i]) * factor / deviation + weight_decay * parameter[i];
  }
};

/// The factor of u: -learning_rate * |p| / |u|.
struct LambRate {
  double learning_rate;
  bool adapts;
  SquareNorm parameter, change;
  float* factor;

  TRIREME_HOST_DEVICE void operator()(std::int64_t /*i*/) const {
    const double above = adapts ? square_root(parameter()) : 0;
    const double below = adapts ? square_root(change()) : 0;
    const double ratio = above > 0 && below > 0 ? above / below : 1;
    *factor = static_cast<float>(-learning_rate * ratio);
  }
};

template <typename State>
struct LambStep {
  LambChange<State> change;
  const float* factor;
  float* parameter;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    parameter[i] = parameter[i] + *factor * change(i);
  }
};

template <typename State, typename Each>
void lamb_passes(const LambOptions& options, std::int64_t step, const float* gradient, State* m,
                 State* v, float* parameter, std::int64_t n, std::span<std::byte> workspace,
                 const Each& each) {
  check_step("LAMB", step);
  const LayerwiseWorkspace norms = layerwise_workspace("lamb", workspace, n);
  if (n == 0) return;
  const auto power = static_cast<double>(step);
  const LambChange<State> change{
      .factor = static_cast<float>(1 / (1 - std::pow(options.beta1, power))),
      .inverse_root = static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, power))),
      .epsilon = static_cast<float>(options.epsilon),
      .weight_decay = static_cast<float>(options.weight_decay),
      .m = m,
      .v = v,
      .parameter = parameter};
  const std::int64_t num_lanes = norms.num_blocks * kLanes;
  each(n, LambMoments<State>{static_cast<float>(options.beta1), static_cast<float>(options.beta2),
                             static_cast<float>(1 - options.beta1),
                             static_cast<float>(1 - options.beta2), gradient, m, v});
  each(num_lanes, SquareLanes<PlainValues>{{parameter}, n, norms.first});
  each(num_lanes, SquareLanes<LambChange<State>>{change, n, norms.second});
  each(2 * norms.num_blocks, SquareBlocks{norms.first});
  each(1, LambRate{options.learning_rate, options.adapts_always || options.weight_decay != 0,
                   norms.first_norm(), norms.second_norm(), norms.factor});
  each(n, LambStep<State>{change, norms.factor, parameter});
}

// ---- LARS

struct LarsRatio {
  double trust, weight_decay, epsilon;
  bool adapts;
  SquareNorm parameter, gradient;
  float* ratio;

  TRIREME_HOST_DEVICE void operator()(std::int64_t /*i*/) const {
    const double weight = adapts ? square_root(parameter()) : 0;
    const double slope = adapts ? square_root(gradient()) : 0;
    const bool has_both = weight > 0 && slope > 0;
    *ratio = static_cast<float>(
        has_both ? trust * weight / (slope + weight_decay * weight + epsilon) : 1);
  }
};

template <typename State>
struct LarsStep {
  float momentum, weight_decay, minus_rate;
  const float* ratio;
  const float* gradient;
  State* buffer;
  float* parameter;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const float p = parameter[i];
    const float b = momentum * to_f32(buffer[i]) + *ratio * (gradient[i] + weight_decay * p);
    put(b, buffer[i]);
    parameter[i] = p + minus_rate * b;
  }
};

template <typename State, typename Each>
void lars_passes(const LarsOptions& options, const float* gradient, State* buffer, float* parameter,
                 std::int64_t n, std::span<std::byte> workspace, const Each& each) {
  const LayerwiseWorkspace norms = layerwise_workspace("lars", workspace, n);
  if (n == 0) return;
  const std::int64_t num_lanes = norms.num_blocks * kLanes;
  if (options.adapts) {
    each(num_lanes, SquareLanes<PlainValues>{{parameter}, n, norms.first});
    each(num_lanes, SquareLanes<PlainValues>{{gradient}, n, norms.second});
    each(2 * norms.num_blocks, SquareBlocks{norms.first});
  }
  each(1, LarsRatio{options.trust, options.weight_decay, options.epsilon, options.adapts,
                    norms.first_norm(), norms.second_norm(), norms.factor});
  each(n, LarsStep<State>{static_cast<float>(options.momentum),
                          static_cast<float>(options.weight_decay),
                          static_cast<float>(-options.learning_rate), norms.factor, gradient,
                          buffer, parameter});
}

// ---- NovoGrad

struct NovogradFactor {
  double beta2, beta3, epsilon;
  bool is_first;
  SquareNorm gradient;
  double* v;
  float* factor;

  TRIREME_HOST_DEVICE void operator()(std::int64_t /*i*/) const {
    const double square = gradient();
    *v = is_first ? square : beta2 * *v + (1 - beta2) * square;
    *factor = static_cast<float>(beta3 / (square_root(*v) + epsilon));
  }
};

template <typename State>
struct NovogradStep {
  float beta1, decay, minus_rate;
  const float* factor;
  const float* gradient;
  State* m;
  float* parameter;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const float p = parameter[i];
    const float new_m = beta1 * to_f32(m[i]) + (*factor * gradient[i] + decay * p);
    put(new_m, m[i]);
    parameter[i] = p + minus_rate * new_m;
  }
};

template <typename State, typename Each>
void novograd_passes(const NovogradOptions& options, std::int64_t step, const float* gradient,
                     double* v, State* m, float* parameter, std::int64_t n,
                     std::span<std::byte> workspace, const Each& each) {
  check_step("NovoGrad", step);
  const LayerwiseWorkspace norms = layerwise_workspace("novograd", workspace, n);
  if (n == 0) return;
  const double beta3 = options.averages_gradients ? 1 - options.beta1 : 1;
  each(norms.num_blocks * kLanes, SquareLanes<PlainValues>{{gradient}, n, norms.first});
  each(norms.num_blocks, SquareBlocks{norms.first});
  each(1, NovogradFactor{options.beta2, beta3, options.epsilon, step == 1, norms.first_norm(), v,
                         norms.factor});
  each(n, NovogradStep<State>{
              static_cast<float>(options.beta1), static_cast<float>(beta3 * options.weight_decay),
              static_cast<float>(-options.learning_rate), norms.factor, gradient, m, parameter});
}

}  // namespace trireme::kernels::cuda::internal
