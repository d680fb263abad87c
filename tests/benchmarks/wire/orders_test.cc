#include "benchmarks/wire/orders.h"

#include <gmock/gmock.h>

#include "tests/base/error_of.h"

namespace trireme::bench {
namespace {

using test::error_of;

TEST(BenchOrders, AnOrderIsALine) {
  const Order order{.what = {.operation = Collective::kAllGather,
                             .bytes = std::int64_t{1} << 33,
                             .dtype = Dtype::kF64,
                             .is_registered = true},
                    .iterations = 20,
                    .warmups = 3,
                    .sleep_us = 40,
                    .is_pass = true};
  EXPECT_EQ(to_text(order), "all_gather 8589934592 f64 20 3 1 40 1");
  EXPECT_EQ(parse_order(to_text(order)), order);
}

TEST(BenchOrders, WhatIsNoOrderIsNamed) {
  for (const char* line :
       {"", "all_reduce", "all_reduce 4 f32 1 0 0 0", "all_reduce 4 f32 0 0 0 0 0",
        "all_reduce 4 f33 1 0 0 0 0", "all_reduce -4 f32 1 0 0 0 0", "all_reduce 4 f32 1 0 2 0 0",
        "all_reduce 4 f32 1 0 0 -1 0", "all_reduce 4 f32 1 0 0 0 2",
        "all_reduce 4 f32 1 0 0 0 0 0"}) {
    const Error error = error_of([&] { parse_order(line); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << line;
    EXPECT_THAT(error.message(), testing::HasSubstr(std::string("'") + line + "'"));
  }
}

TEST(BenchOrders, AnAnswerIsALine) {
  const Answer answer{.times_us = {1.5, 2.25},
                      .cpu_s = 0.125,
                      .wrong = 7,
                      .digest = "ab",
                      .entered_us = 1e12,
                      .left_us = 1e12 + 0.5};
  const std::string line = to_text(answer);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(parse_answer(line), answer);
  const Answer none{.unavailable = "no all_to_all of f32"};
  EXPECT_EQ(parse_answer(to_text(none)), none);
  EXPECT_EQ(error_of([] { parse_answer("{}"); }).kind(), ErrorKind::kCorruptData);
}

}  // namespace
}  // namespace trireme::bench
