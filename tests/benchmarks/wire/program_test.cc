// The program trireme-bench, as the verb `bench` starts it: `bench wire` with ranks of its own.

#include <cstdlib>

#include "tests/command/rank_processes.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"

namespace trireme::bench {
namespace {

using command::test::RankTest;
using command::test::Words;
using testing::HasSubstr;

class BenchWire : public RankTest {
 protected:
  void SetUp() override {
    RankTest::SetUp();
    const char* path = std::getenv("PATH");
    ::setenv("PATH", (TRIREME_BENCH_FOLDER ":" + std::string(path ? path : "")).c_str(), 1);
  }
};

TEST_F(BenchWire, AllReduceOfTwoSizes) {
  const auto process = run({"bench", "wire", "--unlocked", "--ranks", "2", "--bytes", "4,65536",
                            "--operations", "all_reduce", "--rounds", "2", "--json", path("rows")});
  EXPECT_THAT(process->out(), HasSubstr("all_reduce          4 B          1 "));
  const Json rows = parse_json(read_file(path("rows")), "rows");
  ASSERT_EQ(rows.size(), 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& row = rows[i];
    EXPECT_EQ(row["op"], "all_reduce");
    EXPECT_EQ(row["bytes"], i == 0 ? 4 : 65536);
    EXPECT_EQ(row["dtype"], "f32");
    EXPECT_EQ(row["ranks"], 2);
    EXPECT_EQ(row["registered"], false);
    EXPECT_EQ(row["iterations"], 800);
    EXPECT_EQ(row["wrong"], 0);
    EXPECT_EQ(row["differing_ranks"], 0);
    EXPECT_GT(row["p50_us"], 0.0);
    EXPECT_GE(row["p95_us"], row["p50_us"]);
    EXPECT_GT(row["cpu_s_per_byte"], 0.0);
    EXPECT_TRUE(row["peer"].is_null());
  }
}

TEST_F(BenchWire, EveryOperationOfThreeRanksIsRight) {
  run({"bench", "wire", "--unlocked", "--ranks", "3", "--bytes", "100,10000", "--dtype", "f64",
       "--rounds", "1", "--json", path("rows")});
  const Json rows = parse_json(read_file(path("rows")), "rows");
  EXPECT_EQ(rows.size(), 11);  // five operations of two sizes, and the barrier
  for (const Json& row : rows) {
    EXPECT_EQ(row["wrong"], 0) << row;
    EXPECT_EQ(row["differing_ranks"], 0) << row;
  }
}

TEST_F(BenchWire, OurAlgorithmsAreContestantsToo) {
  run({"bench", "wire", "--unlocked", "--ranks", "2", "--bytes", "1000", "--operations",
       "all_reduce", "--rounds", "1", "--transport", "tcp", "--any-order", "--against", "ring",
       "--overlap", "--json", path("rows")});
  const Json rows = parse_json(read_file(path("rows")), "rows");
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0]["peer"], "ring");
  EXPECT_EQ(rows[0]["peer_wrong"], 0);
  EXPECT_GT(rows[0]["ratio"], 0.0);
  EXPECT_TRUE(rows[0]["exposed_share"].is_null());  // too short to be timed beside a sleep
}

TEST_F(BenchWire, MisuseIsNamed) {
  const auto says = [&](Words words, int code, const std::string& what) {
    words.insert(words.begin(), {"bench", "wire", "--unlocked"});
    EXPECT_THAT(run(words, code)->error(), HasSubstr(what));
  };
  EXPECT_THAT(run({"bench", "kernel"}, 2)->error(),
              HasSubstr("'kernel' is no verb; did you mean 'kernels'?"));
  says({"--bytes", "4KB"}, 2, "'4KB' is no size");
  says({"--operations", "allreduce"}, 2, "'allreduce' is no operation");
  says({"--against", "nccl"}, 2, "not 'nccl'");
  says({"--ranks", "1"}, 2, "--ranks");
  says({"--against", "ring"}, 2, "share memory and need no algorithm; add --transport tcp");
  says({"--json", path("no/folder")}, 1, "no");
}

TEST_F(BenchWire, ARankOfAnotherLauncherIsRefused) {
  const auto process = start(
      {"bench", "wire", "--unlocked"},
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(process->wait(), 2);
  EXPECT_THAT(error_of(0), HasSubstr("starts its ranks itself"));
}

/// Each rank is started by itself, as behind `ip netns exec`.
TEST_F(BenchWire, RanksEnterTheirHosts) {
  run({"bench", "wire", "--unlocked", "--ranks", "2", "--bytes", "4", "--operations", "barrier",
       "--rounds", "1", "--enter", "env HOST_OF_RANK={rank}", "--json", path("rows")});
  const Json rows = parse_json(read_file(path("rows")), "rows");
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0]["wrong"], 0);
}

}  // namespace
}  // namespace trireme::bench
