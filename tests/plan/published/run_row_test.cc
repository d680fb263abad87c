#include "trireme/plan/published/run_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/error.h"

namespace trireme::published {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHead =
    "source,model,gpus,gpu_type,tp,pp,dp,microbatch,global_batch,seq_len,step_time_s,note\n";

std::string refusal_of(const std::string& text) {
  try {
    parse_runs(text, "runs.csv");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  }
  return "";
}

TEST(RunRow, RefusesAValueThatIsTooLongToBeSearched) {
  const auto with_device = [](std::size_t bytes) {
    return refusal_of(kHead + ("s,m,8,A100" + std::string(bytes - 4, '8')) + ",1,1,8,1,8,9,1,\n");
  };
  EXPECT_EQ(with_device(1024), "");
  EXPECT_THAT(with_device(1025), HasSubstr("runs.csv, row 2: a value of 1025 bytes, 'A1008"));
}

TEST(RunRow, ReadsQuotedValuesAndLeavesEmptyOnesZero) {
  const auto rows = parse_runs(
      std::string(kHead) + "\"a, b\",GPT 1.7B,32,A100,1,1,,16,512,2048,3.53,\"say \"\"hi\"\"\"\n",
      "runs.csv");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].row, 2);
  EXPECT_EQ(rows[0].source, "a, b");
  EXPECT_EQ(rows[0].note, "say \"hi\"");
  EXPECT_EQ(rows[0].step_time_s, 3.53);
  EXPECT_EQ(rows[0].dp, 0);
  EXPECT_EQ(rows[0].vocab, 0);
}

TEST(RunRow, RefusalsNameFileRowAndColumn) {
  EXPECT_THAT(refusal_of(""), HasSubstr("runs.csv: it is empty"));
  EXPECT_THAT(refusal_of("source,model\n"),
              HasSubstr("runs.csv, row 1: there is no column 'gpu_type'; add it"));
  const std::string head = kHead;
  const auto with = [&](const std::string& gpus, const std::string& tp, const std::string& step) {
    return refusal_of(head + "s,m,8,A100,1,1,8,1,8,2048,1,\n" + "s,m," + gpus + ",A100," + tp +
                      ",1,8,1,8,2048," + step + ",\n");
  };
  EXPECT_EQ(with("8", "1", "1"), "");
  EXPECT_THAT(with("0", "1", "1"),
              HasSubstr("runs.csv, row 3, column gpus: a run has at least one"));
  EXPECT_THAT(with("", "1", "1"), HasSubstr("column gpus"));
  EXPECT_THAT(with("8", "nan", "1"),
              HasSubstr("row 3, column tp: 'nan' is no number of 0 or more"));
  EXPECT_THAT(with("8", "1", "inf"), HasSubstr("column step_time_s: 'inf'"));
  EXPECT_THAT(with("8", "1", "-2"), HasSubstr("column step_time_s: '-2'"));
  EXPECT_THAT(with("8", "1x", "1"), HasSubstr("column tp: '1x'"));
  EXPECT_THAT(with("8", "0.4", "1"), HasSubstr("row 3, column tp: 0.4 is no whole number"));
  EXPECT_THAT(with("2e18", "1", "1"),
              HasSubstr("column gpus: 2e+18 is no whole number of at most"));
  EXPECT_THAT(refusal_of(head + "s,m,8\n"),
              HasSubstr("row 2: 3 values under a head of 12 columns"));
  EXPECT_THAT(refusal_of(head + "\"s,m,8\n"), HasSubstr("row 2: quotes do not fit"));
}

}  // namespace
}  // namespace trireme::published
