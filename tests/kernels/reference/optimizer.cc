#include "tests/kernels/reference/optimizer.h"

#include <array>
#include <bit>
#include <cmath>

#include "trireme/base/random.h"

namespace trireme::kernels::reference {
namespace {

template <typename T>
void any_sgd(const SgdOptions& o, bool first_step, T g, T& buf, T& p) {
  const auto constant = [](double x) { return static_cast<T>(x); };
  if (o.weight_decay != 0) g = std::fma(constant(o.weight_decay), p, g);
  if (o.momentum != 0) {
    const T damped = constant(o.momentum) * buf;
    buf = first_step ? g : std::fma(constant(1 - o.dampening), g, damped);
    g = o.nesterov ? std::fma(constant(o.momentum), buf, g) : buf;
  }
  p = std::fma(constant(-o.learning_rate), g, p);
}

template <typename T>
void any_adamw(const AdamwOptions& o, std::int64_t step, T g, T& m, T& v, T& p) {
  const auto constant = [](double x) { return static_cast<T>(x); };
  const double correction1 = 1 - std::pow(o.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(o.beta2, static_cast<double>(step));
  if (o.weight_decay != 0) p = p * constant(1 - o.learning_rate * o.weight_decay);
  const T old_m = m * constant(o.beta1);
  m = std::fma(constant(1 - o.beta1), g, old_m);
  const T old_v = v * constant(o.beta2);
  const T scaled = constant(1 - o.beta2) * g;
  v = std::fma(scaled, g, old_v);
  const T quotient = std::sqrt(v) / constant(std::sqrt(correction2));
  const T d = quotient + constant(o.epsilon);
  const T change = constant(-(o.learning_rate / correction1)) * m;
  p = p + change / d;
}

/// `update(states...)` with states widened before and rounded after.
template <typename Update, typename... States>
void with_bf16(const Update& update, States&... states) {
  const auto widened = [&](auto... wide) {
    update(wide...);
    ((states = to_bf16(wide)), ...);
  };
  widened(to_f32(states)...);
}

}  // namespace

void sgd(const SgdOptions& options, bool first_step, float gradient, float& buffer,
         float& parameter) {
  any_sgd(options, first_step, gradient, buffer, parameter);
}

void sgd(const SgdOptions& options, bool first_step, double gradient, double& buffer,
         double& parameter) {
  any_sgd(options, first_step, gradient, buffer, parameter);
}

void sgd(const SgdOptions& options, bool first_step, float gradient, Bf16& buffer,
         float& parameter) {
  with_bf16([&](float& buf) { any_sgd(options, first_step, gradient, buf, parameter); }, buffer);
}

void adamw(const AdamwOptions& options, std::int64_t step, float gradient, float& exp_avg,
           float& exp_avg_sq, float& parameter) {
  any_adamw(options, step, gradient, exp_avg, exp_avg_sq, parameter);
}

void adamw(const AdamwOptions& options, std::int64_t step, double gradient, double& exp_avg,
           double& exp_avg_sq, double& parameter) {
  any_adamw(options, step, gradient, exp_avg, exp_avg_sq, parameter);
}

void adamw(const AdamwOptions& options, std::int64_t step, float gradient, Bf16& exp_avg,
           Bf16& exp_avg_sq, float& parameter) {
  with_bf16([&](float& m, float& v) { any_adamw(options, step, gradient, m, v, parameter); },
            exp_avg, exp_avg_sq);
}

void adamw(const AdamwOptions& options, std::int64_t step, std::uint64_t seed, std::int64_t index,
           Bf16 gradient, Bf16& exp_avg, Bf16& exp_avg_sq, Bf16& parameter) {
  const auto halves = [](std::int64_t x) {
    return std::array<std::uint32_t, 2>{static_cast<std::uint32_t>(x),
                                        static_cast<std::uint32_t>(x >> 32)};
  };
  const auto j = static_cast<std::uint32_t>(index % 1024);
  const auto [low, high] = halves(index / 1024);
  const auto words = philox({j / 2 % 128, low, high, 0}, halves(std::bit_cast<std::int64_t>(seed)));
  const auto random = static_cast<std::uint16_t>(words[j / 256] >> (j % 2 * 16));
  float m = to_f32(exp_avg), v = to_f32(exp_avg_sq), p = to_f32(parameter);
  any_adamw(options, step, to_f32(gradient), m, v, p);
  exp_avg = to_bf16_at_random(m, std::rotr(random, 5));
  exp_avg_sq = to_bf16_at_random(v, std::rotr(random, 10));
  parameter = to_bf16_at_random(p, random);
}

}  // namespace trireme::kernels::reference
