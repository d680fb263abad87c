#include "benchmarks/wire/report.h"

#include <gmock/gmock.h>

#include <cmath>

namespace trireme::bench {
namespace {

using testing::HasSubstr;

Setting setting() {
  return {.num_ranks = 4, .transport = "tcp", .algorithm = "auto", .peers = {"gloo", "mpi"}};
}

Result result_of(std::vector<double> times_us) {
  Result result;
  result.times_us = std::move(times_us);
  return result;
}

/// 1 MB in 500 us.
Row row_of(double gloo_us, double mpi_us) {
  Row row{.what = {.operation = Collective::kAllReduce, .bytes = 1'000'000}, .results = {}};
  row.results = {result_of({400, 500, 900}), result_of({gloo_us}), result_of({mpi_us})};
  row.results[0].cpu_s = 0.003;
  row.results[1].cpu_s = 0.0025;
  return row;
}

TEST(BenchReport, Figures) {
  const Row row = row_of(2000, 250);
  EXPECT_DOUBLE_EQ(algorithm_gb_per_s(row), 2);
  EXPECT_DOUBLE_EQ(bus_gb_per_s(row, 4), 3);
  EXPECT_DOUBLE_EQ(cpu_s_per_byte(row), 1e-9);
  EXPECT_DOUBLE_EQ(ratio(row, 0), 4);
  EXPECT_DOUBLE_EQ(ratio(row, 1), 0.5);
}

TEST(BenchReport, TheTable) {
  EXPECT_EQ(
      heading(setting()) + line(setting(), row_of(2000, 250)),
      R"(operation          size      count      p50 us      p95 us    algbw    busbw  wrong  cpu s/GB     gloo p50  /ours  cpu s/GB      mpi p50  /ours  cpu s/GB
all_reduce     1000000 B     250000       500.0       900.0    2.000    3.000      0     1.000       2000.0   4.00     2.500        250.0   0.50     0.000
)");
}

TEST(BenchReport, WhatACallAddsToASleep) {
  Setting overlapped = setting();
  overlapped.is_overlapped = true;
  Row row = row_of(2000, 250);
  row.results[0].exposed_us = {40, 50, 900};
  row.results[1].exposed_us = {1000};
  EXPECT_DOUBLE_EQ(exposed_share(row), 0.1);
  EXPECT_DOUBLE_EQ(exposed_share(row, 1), 0.5);
  EXPECT_TRUE(std::isnan(exposed_share(row, 2)));
  EXPECT_THAT(heading(overlapped), HasSubstr("exposed %"));
  EXPECT_THAT(line(overlapped, row), HasSubstr(" 10.0 "));
  const Json json = to_json(overlapped, {{row}});
  EXPECT_EQ(json[0]["exposed_share"], 0.1);
  EXPECT_EQ(json[0]["peer_exposed_share"], 0.5);
}

TEST(BenchReport, TheBound) {
  Setting bounded = setting();
  bounded.is_bounded = true;
  Row row = row_of(2000, 250);
  EXPECT_TRUE(std::isnan(over_bound(row)));
  row.results[0].pass_us = {300, 400, 900};
  EXPECT_DOUBLE_EQ(over_bound(row), 1.25);
  EXPECT_THAT(heading(bounded), HasSubstr("cpu s/GB  /bound"));
  EXPECT_THAT(line(bounded, row), HasSubstr("1.000    1.25 "));
  EXPECT_EQ(to_json(bounded, {{row}})[0]["over_bound"], 1.25);
}

TEST(BenchReport, TheSummary) {
  const std::vector<Row> rows = {row_of(1000, 500), row_of(4000, 500)};
  EXPECT_EQ(summary(setting(), rows), R"(gloo / ours: geometric mean 4.00 of 2 cases
mpi / ours: geometric mean 1.00 of 2 cases
)");
}

TEST(BenchReport, WhatIsWrongIsSaid) {
  std::vector<Row> rows = {row_of(1000, 500)};
  rows[0].results[0].wrong = 12;
  rows[0].results[2].differing_ranks = 3;
  EXPECT_THAT(line(setting(), rows[0]), HasSubstr(" 12 "));
  EXPECT_THAT(summary(setting(), rows),
              HasSubstr("WRONG: ours all_reduce of 1000000 B: 12 elements, 0 ranks"));
  EXPECT_THAT(summary(setting(), rows),
              HasSubstr("WRONG: mpi all_reduce of 1000000 B: 0 elements, 3"));
  const Json json = to_json(setting(), rows);
  EXPECT_EQ(json[0]["wrong"], 12);
  EXPECT_EQ(json[1]["peer_wrong"], 3);
}

TEST(BenchReport, WhatWasNotRunHasNoFigures) {
  Row row = row_of(1000, 500);
  row.results[0] = {};
  row.results[0].unavailable = "no all_to_all of f32";
  EXPECT_TRUE(std::isnan(ratio(row, 0)));
  EXPECT_THAT(line(setting(), row), HasSubstr(" - "));
  EXPECT_THAT(summary(setting(), {{row}}), HasSubstr("gloo / ours: geometric mean - of 0 cases"));
  const Json json = to_json(setting(), {{row}});
  EXPECT_TRUE(json[0]["p50_us"].is_null());
  EXPECT_TRUE(json[0]["wrong"].is_null());
  EXPECT_EQ(json[0]["peer_p50_us"], 1000);
}

TEST(BenchReport, ARowForEachPeerOrOne) {
  const Json json = to_json(setting(), {{row_of(2000, 250)}});
  ASSERT_EQ(json.size(), 2);
  EXPECT_EQ(json[0]["op"], "all_reduce");
  EXPECT_EQ(json[0]["bytes"], 1'000'000);
  EXPECT_EQ(json[0]["ranks"], 4);
  EXPECT_EQ(json[0]["p50_us"], 500);
  EXPECT_EQ(json[0]["peer"], "gloo");
  EXPECT_EQ(json[1]["peer"], "mpi");
  EXPECT_EQ(json[1]["ratio"], 0.5);
  Setting alone = setting();
  alone.peers.clear();
  const Json one = to_json(alone, {{row_of(0, 0)}});
  ASSERT_EQ(one.size(), 1);
  EXPECT_TRUE(one[0]["peer"].is_null());
}

}  // namespace
}  // namespace trireme::bench
