// The passes of GPUs' connected components, run on the host: what the processors' kernel finds.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "packs/volume/cuda/components_passes.h"
#include "tests/kernels/cuda/orders.h"
#include "tests/packs/volume/cuda/components_problem.h"
#include "trireme/error.h"

namespace trireme::volume::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

std::vector<std::byte> components_workspace(const VolumeShape& shape) {
  return std::vector<std::byte>(internal::ComponentsSpace(internal::Cutter(), shape).bytes,
                                std::byte{0xFF});
}

template <typename Label, typename Each>
ComponentsResult found_by_passes(const ComponentsProblem<Label>& p, Connectivity connectivity,
                                 const Each& each) {
  ComponentsResult result{std::vector<Component>(p.labels.size()),
                          std::vector<std::int32_t>(p.labels.size(), -7)};
  std::int64_t count = -7;
  auto workspace = components_workspace(p.shape);
  internal::components_passes(
      p.shape, p.labels.data(), connectivity,
      {result.components.data(), std::ssize(result.components), &count, result.map.data()},
      workspace, each);
  result.components.resize(count);
  return result;
}

template <typename Label>
void expect_those_of_a_processor() {
  for (const auto& p : components_problems<Label>()) {
    for (const Connectivity connectivity : kAllConnectivities) {
      const ComponentsResult expected = p.solve(connectivity);
      for (const Order order : kOrders) {
        EXPECT_TRUE(found_by_passes(p, connectivity, InOrder(order)) == expected)
            << p.name << " in " << to_text(p.shape) << ", order " << static_cast<int>(order);
      }
    }
  }
}

TEST(CudaComponentsPasses, FindWhatAProcessorFinds) {
  expect_those_of_a_processor<std::uint8_t>();
  expect_those_of_a_processor<std::int32_t>();
}

// The comb fails within a run or two where a union is a plain store.
TEST(CudaComponentsPasses, ThreadsThatMeetFindTheSame) {
  for (const auto& p :
       {spiral<std::uint8_t>(61), snake<std::uint8_t>({9, 15, 150}),
        comb<std::uint8_t>({2000, 2, 131}), random_labels<std::uint8_t>({20, 30, 100}, 1, 0.5),
        random_labels<std::uint8_t>({20, 30, 100}, 2, 0.2)}) {
    for (const Connectivity connectivity : kAllConnectivities) {
      EXPECT_TRUE(found_by_passes(p, connectivity, OnThreads()) == p.solve(connectivity)) << p.name;
    }
  }
}

TEST(CudaComponentsPasses, LargerVolumesTakeSeveralPartsOfALane) {
  // More parts than kPrefixLanes, so that a lane adds up several.
  const auto p = random_labels<std::uint8_t>({30, 50, 90}, 3, 0.4);
  ASSERT_GT(p.shape.count(), internal::kPrefixPart * internal::kPrefixLanes);
  EXPECT_TRUE(found_by_passes(p, Connectivity::kFaces, InOrder(Order::kScattered)) ==
              p.solve(Connectivity::kFaces));
}

TEST(CudaComponentsPasses, WhatDoesNotFitIsCounted) {
  const auto p = random_labels<std::uint8_t>({4, 5, 65}, 2, 0.5);
  const ComponentsResult expected = p.solve(Connectivity::kFaces);
  Component untouched;
  untouched.label = -7;
  std::vector<Component> components(11, untouched);
  std::int64_t count = -7;
  auto workspace = components_workspace(p.shape);
  internal::components_passes(p.shape, p.labels.data(), Connectivity::kFaces,
                              {components.data(), 10, &count, nullptr}, workspace, InOrder());
  EXPECT_EQ(count, std::ssize(expected.components));
  EXPECT_TRUE(std::equal(components.begin(), components.begin() + 10, expected.components.begin()));
  EXPECT_EQ(components[10], untouched);
}

TEST(CudaComponentsPasses, BadArgumentsAreRefused) {
  std::vector<std::byte> small(64), enough(1 << 16);
  std::int64_t count = 0;
  const std::uint8_t label = 1;
  const auto find = [&](const VolumeShape& shape, std::span<std::byte> workspace) {
    internal::components_passes(shape, &label, Connectivity::kFaces, {.count = &count}, workspace,
                                InOrder());
  };
  EXPECT_THROW(find({0, 1, 1}, enough), Error);
  EXPECT_THROW(find({1, 1, -1}, enough), Error);
  EXPECT_THROW(find({2048, 1024, 1024}, enough), Error);
  EXPECT_THROW(find({1, 1, 1}, small), Error);
}

}  // namespace
}  // namespace trireme::volume::cuda
