#include "benchmarks/kernels/tensors.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trireme::kernels::bench {
namespace {

TEST(TensorsTest, AFileGivesBackWhatWasWritten) {
  Tensors tensors;
  const auto values = tensors.add<float>("values", {2, 3});
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  tensors.add<std::int64_t>("none", {0});
  tensors.options["blank"] = "-1.5";
  const std::filesystem::path file = testing::TempDir() + "tensors_test.safetensors";
  tensors.write(file);
  const Tensors read = Tensors::read(file);
  EXPECT_TRUE(std::ranges::equal(read.get<float>("values"), values));
  EXPECT_EQ(read.at("values").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_TRUE(read.get<std::int64_t>("none").empty());
  EXPECT_EQ(read.number("blank"), -1.5);
}

TEST(TensorsTest, WhatIsNotThereIsNamed) {
  Tensors tensors;
  tensors.add<float>("values", {1});
  tensors.options["word"] = "none";
  EXPECT_THROW(tensors.get<double>("values"), Error);
  EXPECT_THROW(tensors.get<float>("others"), Error);
  EXPECT_THROW(tensors.number("word"), Error);
  EXPECT_THROW(tensors.number("absent"), Error);
}

}  // namespace
}  // namespace trireme::kernels::bench
