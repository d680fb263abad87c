#include "benchmarks/kernels/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace trireme::kernels::bench {
namespace {

using testing::HasSubstr;

class OneNumber final : public Case {
 public:
  const Tensors& inputs() const override { return inputs_; }
  void run() override {}
  Tensors outputs() const override { return of(1); }

  static Tensors of(float number) {
    Tensors tensors;
    tensors.add<float>("x", {1})[0] = number;
    return tensors;
  }

 private:
  Tensors inputs_ = of(0);
};

/// Of a peer that gives `outputs` and then does as the lines of a shell script say.
Timing timing_of(const Tensors& outputs, const std::string& script, std::string& table) {
  const std::filesystem::path folder =
      testing::TempDir() + "trireme_runner_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  outputs.write(folder / "made");
  std::ofstream(folder / "peer.sh")
      << "read\ncp " << folder / "made" << " " << folder / "case/outputs.safetensors" << "\n"
      << R"(echo '{"version": "shell 1"}')" << "\n"
      << script;
  const CaseEntry entry{.name = "one/number", .peers = {"shell"}, .make = [](const CaseSetting&) {
                          return std::make_unique<OneNumber>();
                        }};
  const Row row = run_case(entry, {.rounds = 2,
                                   .peers = {"best"},
                                   .peer_start = {"/bin/bash", folder / "peer.sh"},
                                   .folder = folder / "case"});
  table = lines(row, {});
  std::filesystem::remove_all(folder);
  return row.timings.at(1);
}

constexpr const char* kAnswer = "read\necho '{\"ms\": 123456}'\n";

TEST(RunnerTest, APeerThatAgreesIsTimed) {
  std::string table;
  const Timing timing = timing_of(OneNumber::of(1), std::string(kAnswer) + kAnswer, table);
  EXPECT_FALSE(timing.is_wrong || timing.has_failed) << timing.problem;
  EXPECT_EQ(timing.ms.size(), 2);
  EXPECT_THAT(table, HasSubstr("123456.000"));
}

TEST(RunnerTest, OfFiveRoundsThe95thPercentileIsTheSlowest) {
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.95), 5);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.5), 3);
  EXPECT_EQ(quantile({7}, 0.95), 7);
  EXPECT_EQ(median({1, 2, 3, 10}), 2.5);
  EXPECT_EQ(median({3, 1, 2}), 2);
}

TEST(RunnerTest, APeerThatDiffersHasNoFigure) {
  std::string table;
  const Timing timing = timing_of(OneNumber::of(3), kAnswer, table);
  EXPECT_TRUE(timing.is_wrong);
  EXPECT_TRUE(timing.ms.empty());
  EXPECT_THAT(table, HasSubstr("shell 1"));
  EXPECT_THAT(table, HasSubstr("differs by 6.7e-01 at x[0]"));
}

TEST(RunnerTest, APeerThatGivesNothingIsNotCompared) {
  std::string table;
  EXPECT_TRUE(timing_of({}, kAnswer, table).is_wrong);
  EXPECT_THAT(table, HasSubstr("not compared: it gave nothing"));
}

TEST(RunnerTest, APeerThatEndsHasFailed) {
  std::string table;
  const Timing timing = timing_of(OneNumber::of(1), kAnswer, table);  // one answer of two
  EXPECT_TRUE(timing.has_failed);
  EXPECT_THAT(table, HasSubstr("the process of the peers"));
  EXPECT_THAT(table, testing::Not(HasSubstr("123456")));
}

TEST(RunnerTest, APeerThatIsNotInstalledHasNotFailed) {
  std::string table;
  const Timing timing =
      timing_of(OneNumber::of(1), "read\necho '{\"missing\": \"not installed\"}'\n", table);
  EXPECT_FALSE(timing.has_failed);
  EXPECT_THAT(table, HasSubstr("not installed"));
}

}  // namespace
}  // namespace trireme::kernels::bench
