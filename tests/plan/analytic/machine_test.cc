#include "trireme/plan/analytic/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "trireme/error.h"
#include "trireme/plan/analytic/achieved.h"
#include "trireme/plan/analytic/group_time.h"

namespace trireme::analytic {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  try {
    machine_of_text(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

TEST(Machine, RefusesANetworkWithoutSpeed) {
  EXPECT_THAT(refusal_of("A100-80GB (8/node, 0Gb/s inter-node)"),
              HasSubstr("says a network of 0 Gb/s; correct it"));
  EXPECT_THAT(refusal_of("A100 (8x0Gb/s IB)"), HasSubstr("says a network of 0 Gb/s"));
}

TEST(Machine, NamesAreUniqueAndNumbersPositive) {
  std::set<std::string> names;
  for (const Machine& one : machines()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_GT(one.accelerator.f16_flops, 0) << one.name;
    const double f8 = one.accelerator.f8_flops;
    EXPECT_TRUE(f8 == 0 || f8 >= one.accelerator.f16_flops) << one.name;
    EXPECT_GT(one.accelerator.memory_bytes_per_s, 0) << one.name;
    EXPECT_GT(one.network_share(), 0) << one.name;
    EXPECT_EQ(&machine(one.name), &one);
  }
}

TEST(Machine, P4dHasTheNumbersOfItsMakers) {
  const Machine& p4d = machine("p4d");
  EXPECT_EQ(p4d.devices_per_host, 8);
  EXPECT_EQ(p4d.accelerator.flops(MatrixType::kBf16), 312e12);
  EXPECT_EQ(p4d.accelerator.flops(MatrixType::kF32), 19.5e12);
  EXPECT_EQ(p4d.network_bytes_per_s, 50e9);  // 400 Gb/s.
  EXPECT_EQ(p4d.network_share(), 6.25e9);
}

TEST(Machine, TextsOfPublishedTablesAreRecognised) {
  EXPECT_EQ(machine_of_text("A100-80GB SXM (Selene, DGX A100, 8x200Gb/s IB)").network_bytes_per_s,
            200e9);
  EXPECT_EQ(machine_of_text("A100-40GB (DGX A100)").accelerator.name, "A100-40");
  EXPECT_EQ(machine_of_text("a100_40gb").accelerator.name, "A100-40");
  EXPECT_EQ(machine_of_text("V100 16/32GB (Jean Zay, 4/node)").devices_per_host, 4);
  EXPECT_EQ(machine_of_text("V100-32GB (DGX-2)").devices_per_host, 16);
  const Machine narrow =
      machine_of_text("A100-80GB (8/node, 800Gb/s inter-node per vTrain config)");
  EXPECT_EQ(narrow.network_bytes_per_s, 100e9);
  const Machine teton = machine_of_text("H100-96GB HBM2e 500W (Grand Teton, 400Gb/s per GPU)");
  EXPECT_EQ(teton.network_share(), 50e9);
  EXPECT_EQ(teton.accelerator.memory_bytes_per_s, 2400e9);
}

TEST(Machine, UnknownOnesAreRefusedWithTheKnown) {
  EXPECT_THAT(refusal_of("TPU v4"), HasSubstr("'TPU v4' names no device that is known"));
  EXPECT_THAT(refusal_of(""), HasSubstr("p4d"));
  EXPECT_THROW(machine("p9"), Error);
}

/// Ranks of a host share its cards: eight together use all, one its eighth.
TEST(GroupTimes, AGroupIsAsWideAsItsRanksOfAHost) {
  AchievedParts all;
  all.link = all.network = 1;
  all.latency_us = 0;
  const GroupTimes times(machine("p4d"), all);
  EXPECT_DOUBLE_EQ(times.all_reduce_s({8, 1}, 300e9), 2 * 7.0 / 8);
  EXPECT_DOUBLE_EQ(times.all_reduce_s({16, 1}, 50e9), 2 * 15.0 / 16);
  EXPECT_DOUBLE_EQ(times.all_reduce_s({16, 8}, 50e9), 8 * 2 * 15.0 / 16);
  EXPECT_DOUBLE_EQ(times.gather_s({16, 1}, 50e9), 15.0 / 16);
  EXPECT_EQ(times.all_reduce_s({1, 1}, 1e9), 0);
  EXPECT_DOUBLE_EQ(times.message_s(4, 300e9), 1);
  EXPECT_DOUBLE_EQ(times.message_s(8, 6.25e9), 1);
}

}  // namespace
}  // namespace trireme::analytic
