#include "trireme/engine/reference/run_record.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace trireme::reference {
namespace {

/// Two steps of a run, as tensors.
struct SomeRun {
  std::vector<double> losses;
  std::vector<Tensors> gradients;
  Tensors weights;
  Tensors buffers;
};

SomeRun two_steps() {
  const auto some = [](double first) { return at::arange(first, first + 4, at::kFloat); };
  return {.losses = {1.5, 1.25},
          .gradients = {{{"w", some(1)}, {"v", some(2)}}, {{"w", some(3)}}},
          .weights = {{"w", some(4)}, {"v", some(5)}},
          .buffers = {{"mean", some(6)}}};
}

Digests digests_of(const Tensors& tensors) {
  Digests result;
  for (const auto& [name, tensor] : tensors) result[name] = digest_of(tensor);
  return result;
}

RunRecord record_of(const SomeRun& run) {
  RunRecord record{.losses = run.losses,
                   .weights = digests_of(run.weights),
                   .buffers = digests_of(run.buffers),
                   .last_weights = run.weights};
  for (const Tensors& gradients : run.gradients) {
    take_gradients(gradients, Keep::kTensors, record);
  }
  return record;
}

Comparison compared(const std::function<void(SomeRun&)>& change) {
  SomeRun run = two_steps();
  change(run);
  Comparison result;
  compare(record_of(run), record_of(two_steps()), result);
  return result;
}

/// The smallest change that a float can have.
void nudge(at::Tensor& tensor) {
  auto* first = tensor.mutable_data_ptr<float>();
  *first = std::nextafter(*first, 1e9F);
}

TEST(Compare, EqualRunsPass) {
  const Comparison same = compared([](SomeRun&) {});
  EXPECT_TRUE(same.passes());
  EXPECT_TRUE(same.is_bitwise);
  EXPECT_EQ(same.first_difference, "");
}

TEST(Compare, OneBitIsADifferenceAndTheFirstIsNamed) {
  const std::map<std::string, std::function<void(SomeRun&)>> changes = {
      {"loss of step 1", [](SomeRun& r) { r.losses[1] = std::nextafter(r.losses[1], 2.0); }},
      {"gradient of step 0 of 'v'", [](SomeRun& r) { nudge(r.gradients[0].at("v")); }},
      {"gradient of step 1 of 'w'", [](SomeRun& r) { nudge(r.gradients[1].at("w")); }},
      {"weight 'w'", [](SomeRun& r) { nudge(r.weights.at("w")); }},
      {"buffer 'mean'", [](SomeRun& r) { nudge(r.buffers.at("mean")); }},
      {"weight 'v' is missing", [](SomeRun& r) { r.weights.erase("v"); }},
      {"gradient of step 1 of 'v' should not be",
       [](SomeRun& r) { r.gradients[1]["v"] = at::ones({2}); }},
  };
  for (const auto& [name, change] : changes) {
    const Comparison result = compared(change);
    EXPECT_EQ(result.first_difference, name);
    EXPECT_FALSE(result.passes()) << name;
  }
}

TEST(Compare, ShapesAndTypesCount) {
  EXPECT_FALSE(compared([](SomeRun& r) { r.weights["w"] = r.weights["w"].view({2, 2}); }).passes());
  EXPECT_FALSE(
      compared([](SomeRun& r) { r.weights["w"] = r.weights["w"].to(at::kDouble); }).passes());
}

TEST(Compare, WithinToleranceWhereBitsAreNotAskedFor) {
  Comparison close = compared([](SomeRun& r) { r.losses[0] *= 1 + 1e-7; });
  EXPECT_FALSE(close.passes());
  close.must_be_bitwise = false;
  EXPECT_TRUE(close.passes());
  EXPECT_NEAR(close.worst_loss, 1e-7, 1e-9);
}

TEST(Compare, AGradientThatIsMissingOrShouldNotBeIsNotWithinTolerance) {
  for (const auto& change : std::vector<std::function<void(SomeRun&)>>{
           [](SomeRun& r) { r.gradients[0].erase("v"); },
           [](SomeRun& r) { r.gradients[1]["v"] = at::ones({2}); },
           [](SomeRun& r) { r.buffers.erase("mean"); }}) {
    Comparison lost = compared(change);
    lost.must_be_bitwise = false;
    EXPECT_FALSE(lost.passes()) << lost.first_difference;
  }
}

TEST(Compare, SaysHowFarApartTensorsAre) {
  const Comparison far = compared([](SomeRun& r) {
    r.gradients[0]["v"] = r.gradients[0].at("v") * 1.5;
    r.weights["w"] = r.weights.at("w") * 1.25;
  });
  EXPECT_NEAR(far.worst_gradient, 0.5, 1e-6);
  EXPECT_NEAR(far.worst_weight, 0.25, 1e-6);
}

TEST(Compare, SaysThatLossesAreNotFinite) {
  SomeRun diverged = two_steps();
  diverged.losses[1] = std::numeric_limits<double>::quiet_NaN();
  Comparison result;
  compare(record_of(diverged), record_of(diverged), result);
  EXPECT_TRUE(result.is_bitwise);
  EXPECT_FALSE(result.is_finite);
}

}  // namespace
}  // namespace trireme::reference
