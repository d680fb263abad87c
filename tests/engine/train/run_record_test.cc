#include "trireme/engine/train/run_record.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace trireme::train {
namespace {

RunRecord two_steps() {
  const auto some = [](double first) { return at::arange(first, first + 4, at::kFloat); };
  return {.losses = {1.5, 1.25},
          .gradients = {{{"w", some(1)}, {"v", some(2)}}, {{"w", some(3)}}},
          .weights = {{"w", some(4)}, {"v", some(5)}},
          .buffers = {{"mean", some(6)}}};
}

Comparison compared(const std::function<void(RunRecord&)>& change) {
  RunRecord run = two_steps();
  change(run);
  Comparison result;
  compare(run, two_steps(), result);
  return result;
}

/// The smallest change that a float can have.
void nudge(at::Tensor& tensor) {
  auto* first = tensor.mutable_data_ptr<float>();
  *first = std::nextafter(*first, 1e9F);
}

TEST(Compare, EqualRunsPass) {
  const Comparison same = compared([](RunRecord&) {});
  EXPECT_TRUE(same.passes());
  EXPECT_TRUE(same.is_bitwise);
  EXPECT_EQ(same.first_difference, "");
}

TEST(Compare, OneBitIsADifferenceAndTheFirstIsNamed) {
  const std::map<std::string, std::function<void(RunRecord&)>> changes = {
      {"loss of step 1", [](RunRecord& r) { r.losses[1] = std::nextafter(r.losses[1], 2.0); }},
      {"gradient of step 0 of 'v'", [](RunRecord& r) { nudge(r.gradients[0].at("v")); }},
      {"gradient of step 1 of 'w'", [](RunRecord& r) { nudge(r.gradients[1].at("w")); }},
      {"weight 'w'", [](RunRecord& r) { nudge(r.weights.at("w")); }},
      {"buffer 'mean'", [](RunRecord& r) { nudge(r.buffers.at("mean")); }},
      {"weight 'v' is missing", [](RunRecord& r) { r.weights.erase("v"); }},
      {"gradient of step 1 of 'v' should not be",
       [](RunRecord& r) { r.gradients[1]["v"] = at::ones({2}); }},
  };
  for (const auto& [name, change] : changes) {
    const Comparison result = compared(change);
    EXPECT_EQ(result.first_difference, name);
    EXPECT_FALSE(result.passes()) << name;
  }
}

TEST(Compare, ShapesAndTypesCount) {
  EXPECT_FALSE(
      compared([](RunRecord& r) { r.weights["w"] = r.weights["w"].view({2, 2}); }).passes());
  EXPECT_FALSE(
      compared([](RunRecord& r) { r.weights["w"] = r.weights["w"].to(at::kDouble); }).passes());
}

TEST(Compare, WithinToleranceWhereBitsAreNotAskedFor) {
  Comparison close = compared([](RunRecord& r) { r.losses[0] *= 1 + 1e-7; });
  EXPECT_FALSE(close.passes());
  close.must_be_bitwise = false;
  EXPECT_TRUE(close.passes());
  EXPECT_NEAR(close.worst_loss, 1e-7, 1e-9);
}

TEST(Compare, AGradientThatIsMissingOrShouldNotBeIsNotWithinTolerance) {
  for (const auto& change : std::vector<std::function<void(RunRecord&)>>{
           [](RunRecord& r) { r.gradients[0].erase("v"); },
           [](RunRecord& r) { r.gradients[1]["v"] = at::ones({2}); },
           [](RunRecord& r) { r.buffers.erase("mean"); }}) {
    Comparison lost = compared(change);
    lost.must_be_bitwise = false;
    EXPECT_FALSE(lost.passes()) << lost.first_difference;
  }
}

TEST(Compare, SaysThatLossesAreNotFinite) {
  RunRecord diverged = two_steps();
  diverged.losses[1] = std::numeric_limits<double>::quiet_NaN();
  Comparison result;
  compare(diverged, diverged, result);
  EXPECT_TRUE(result.is_bitwise);
  EXPECT_FALSE(result.is_finite);
}

}  // namespace
}  // namespace trireme::train
