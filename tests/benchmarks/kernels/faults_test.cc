// The checks of the benchmark see kernels that are wrong: each fault here is of the kind that a check
// of one step, or of one mean, lets pass.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "benchmarks/kernels/difference.h"
#include "benchmarks/kernels/dropout_checks.h"
#include "benchmarks/kernels/optimizer_case.h"
#include "packs/text/kernels/attention.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/lamb.h"
#include "trireme/kernels/optimizer/lars.h"
#include "trireme/kernels/optimizer/sgd.h"

namespace trireme::kernels::bench {
namespace {

// ---- Optimizers

template <typename State>
using Step = OptimizerStep<State>;

template <typename State, typename Update>
Tensors outputs_of(const Update& update) {
  const std::vector<ParameterShape> shapes = {{64, 100}, {1, 77}, {30, 9}};
  const auto made = make_optimizer_case<State>(shapes, {}, update);
  made->check();
  return made->outputs();
}

template <typename State = float, typename Fault, typename Right>
void expect_seen(const char* what, const Fault& fault, const Right& right) {
  const Tolerances tolerances{
      std::is_same_v<State, float> ? kChangeTolerance : kRoundedChangeTolerance,
      {{"moment", kMomentTolerance}}};
  const Tensors expected = outputs_of<float>(right);
  EXPECT_LE(compare(outputs_of<State>(right), expected, tolerances).excess, 1) << what;
  EXPECT_GT(compare(outputs_of<State>(fault), expected, tolerances).excess, 1) << what;
}

constexpr SgdOptions kSgd{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1};
constexpr AdamwOptions kAdamw{.weight_decay = 1};

void sgd_with(const SgdOptions& options, const auto& t) {
  sgd(options, t.step == 1, t.gradient, t.m, t.parameter, t.size);
}

void adamw_with(const AdamwOptions& options, const auto& t) {
  adamw(options, t.step, t.gradient, t.m, t.v, t.parameter, t.size);
}

TEST(FaultsTest, OfSgdAreSeen) {
  const auto right = [](const auto& t) { sgd_with(kSgd, t); };
  SgdOptions slow = kSgd, undecayed = kSgd, heavy = kSgd;
  slow.learning_rate *= 0.85;
  undecayed.weight_decay = 0;
  heavy.momentum = 0.91;
  expect_seen("an update 15 % too small", [=](const auto& t) { sgd_with(slow, t); }, right);
  expect_seen("no decay", [=](const auto& t) { sgd_with(undecayed, t); }, right);
  expect_seen("another momentum", [=](const auto& t) { sgd_with(heavy, t); }, right);
  expect_seen(
      "momentum that is never read",
      [](const auto& t) { sgd(kSgd, true, t.gradient, t.m, t.parameter, t.size); }, right);
}

TEST(FaultsTest, OfAdamwAreSeen) {
  const auto right = [](const auto& t) { adamw_with(kAdamw, t); };
  AdamwOptions undecayed = kAdamw, heavy = kAdamw, slow_square = kAdamw;
  undecayed.weight_decay = 0;
  heavy.beta1 = 0.89;
  slow_square.beta2 = 0.99;
  expect_seen("no decay", [=](const auto& t) { adamw_with(undecayed, t); }, right);
  expect_seen("another beta1", [=](const auto& t) { adamw_with(heavy, t); }, right);
  expect_seen("another beta2", [=](const auto& t) { adamw_with(slow_square, t); }, right);
  expect_seen(
      "steps that are not counted",
      [](const auto& t) { adamw(kAdamw, 1, t.gradient, t.m, t.v, t.parameter, t.size); }, right);
  expect_seen(
      "a last element that is left out",
      [](const auto& t) { adamw(kAdamw, t.step, t.gradient, t.m, t.v, t.parameter, t.size - 1); },
      right);
}

TEST(FaultsTest, OfRoundedMomentsAreSeen) {
  const auto right = [](const auto& t) { adamw_with(kAdamw, t); };
  /// Rounds towards zero what the kernel rounds to nearest.
  const auto truncated = [](const Step<Bf16>& t) {
    std::vector<float> m(t.size), v(t.size);
    for (std::int64_t i = 0; i < t.size; ++i) {
      m[i] = to_f32(t.m[i]);
      v[i] = to_f32(t.v[i]);
    }
    adamw(kAdamw, t.step, t.gradient, m.data(), v.data(), t.parameter, t.size);
    for (std::int64_t i = 0; i < t.size; ++i) {
      t.m[i] = {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(m[i]) >> 16)};
      t.v[i] = {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v[i]) >> 16)};
    }
  };
  expect_seen<Bf16>("moments rounded to one side", truncated, right);
}

TEST(FaultsTest, OfOptimizersWithNormsAreSeen) {
  const auto lamb_with = [](const LambOptions& options) {
    return [=](const auto& t) { lamb(options, t.step, t.gradient, t.m, t.v, t.parameter, t.size); };
  };
  const LambOptions lamb_right{.weight_decay = 1};
  LambOptions undecayed = lamb_right;
  undecayed.weight_decay = 0;
  expect_seen("LAMB without decay", lamb_with(undecayed), lamb_with(lamb_right));
  const auto lars_with = [](const LarsOptions& options) {
    return [=](const auto& t) { lars(options, t.gradient, t.m, t.parameter, t.size); };
  };
  const LarsOptions lars_right{.weight_decay = 0.1};
  LarsOptions blind = lars_right, light = lars_right;
  blind.adapts = false;
  light.momentum = 0;
  expect_seen("LARS without its ratio", lars_with(blind), lars_with(lars_right));
  expect_seen("LARS without momentum", lars_with(light), lars_with(lars_right));
}

// ---- Dropout

constexpr std::int64_t kLength = 64, kHeads = 4, kWidth = 16, kSequences = 32;

struct AttentionResult {
  std::vector<float> out, q, k, v;
};

struct AttentionInputs {
  AttentionInputs() {
    std::uint64_t seed = 0;
    for (auto* one : {&q, &k, &v, &gradient_out}) {
      one->resize(kSequences * kLength * kHeads * kWidth);
      fill_normal(*one, ++seed);
    }
    for (std::int64_t i = 0; i <= kSequences; ++i) offsets.push_back(i * kLength);
  }

  /// Forward with one seed, backward with another: the same where all is right.
  AttentionResult run(double drop_probability, std::uint64_t seed, std::uint64_t seed_back) const {
    const text::AttentionShape shape{offsets, kHeads, kWidth};
    AttentionResult made{q, q, q, q};
    std::vector<float> log_sum(kSequences * kLength * kHeads);
    text::attention(shape, {.drop_probability = drop_probability, .seed = seed}, q.data(), k.data(),
                    v.data(), made.out.data(), log_sum.data());
    text::attention_backward(shape, {.drop_probability = drop_probability, .seed = seed_back},
                             {q.data(), k.data(), v.data(), made.out.data(), log_sum.data(),
                              gradient_out.data(), made.q.data(), made.k.data(), made.v.data()});
    return made;
  }

  Tensors checked(const AttentionResult& dropped) const {
    const AttentionResult plain = run(0, 1, 1);
    Tensors made;
    add_statistics("out", dropped.out, plain.out, made);
    add_statistics("gradient_q", dropped.q, plain.q, made);
    add_statistics("gradient_k", dropped.k, plain.k, made);
    add_statistics("gradient_v", dropped.v, plain.v, made);
    add_identity("out_of_v", product(dropped.v, v), product(dropped.out, gradient_out), made);
    add_identity("q_of_k", product(dropped.q, q), product(dropped.k, k), made);
    return made;
  }

  std::vector<float> q, k, v, gradient_out;
  std::vector<std::int64_t> offsets;
};

/// The bench's cases are 16 times larger, and their noise a quarter.
Tolerances dropout_tolerances() {
  return {2 * kStatisticsTolerance,
          {{"out_of_v", kIdentityTolerance}, {"q_of_k", kIdentityTolerance}}};
}

TEST(FaultsTest, OfDropoutAreSeen) {
  const AttentionInputs inputs;
  const Tensors expected = inputs.checked(inputs.run(0.1, 5, 5));
  const auto excess_of = [&](const AttentionResult& made) {
    return compare(inputs.checked(made), expected, dropout_tolerances()).excess;
  };
  const AttentionResult right = inputs.run(0.1, 9, 9);
  EXPECT_LE(excess_of(right), 1);
  EXPECT_GT(excess_of(inputs.run(0.1, 9, 10)), 1) << "a backward with another mask";
  EXPECT_GT(excess_of(inputs.run(0, 9, 9)), 1) << "nothing dropped";
  for (auto AttentionResult::* one :
       {&AttentionResult::out, &AttentionResult::q, &AttentionResult::k, &AttentionResult::v}) {
    AttentionResult wrong = right;
    std::ranges::fill(wrong.*one, 0.0F);
    EXPECT_GT(excess_of(wrong), 1) << "zeros";
    wrong = right;
    for (float& x : wrong.*one) x *= 0.9F;
    EXPECT_GT(excess_of(wrong), 1) << "not scaled by what is kept";
  }
}

// ---- Differences

TEST(FaultsTest, OfSmallGradientsAreSeen) {
  Tensors right, wrong;
  const auto expected = right.add<float>("gradient", {1000}),
             made = wrong.add<float>("gradient", {1000});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = 1e-6F * static_cast<float>(i % 7 + 1);
    made[i] = 0;  // an absolute difference of 1e-5 says that this is right
  }
  EXPECT_GT(compare(wrong, right, {1e-3}).excess, 1);
}

}  // namespace
}  // namespace trireme::kernels::bench
