#include "trireme/command/training_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace trireme::command {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Two losses; the second is a metric.
StepReport report_of(std::int64_t step, double seconds) {
  return {.step = step,
          .losses = {{{.name = "loss", .sum = 6, .weight = 2},
                      {.name = "accuracy", .sum = 1, .weight = 2, .coefficient = 0}}},
          .seconds = seconds};
}

/// What is printed about steps of 10 ms, the fifth beside a checkpoint.
std::string printed(const ReportOptions& options) {
  const layout::Plan plan{.batch = {.global_batch = 10, .microbatch = 10, .lanes = 1}};
  testing::internal::CaptureStdout();
  TrainingReport report(plan, {}, options);
  for (int step = 0; step < options.num_steps; ++step) {
    report.add(report_of(step, step == 4 ? 0.99 : 0.01));
  }
  report.finish();
  return testing::internal::GetCapturedStdout();
}

// `990 ms beside a checkpoint`.
TEST(TrainingReport, RatesAreOfAllStepsSinceTheLastLine) {
  const std::string text = printed({.num_steps = 5, .log_every = 100});
  EXPECT_THAT(text, AllOf(HasSubstr("step      0  "), HasSubstr("step      4  "),
                          HasSubstr("39 samples/s  255.0 ms")));
}

// The median was of all steps, and each line copied and sorted them: 1,000 fast ones hid that the
// machine has become slow.
TEST(TrainingReport, WhatIsToGoFollowsTheLatestSteps) {
  const layout::Plan plan{.batch = {.global_batch = 10, .microbatch = 10, .lanes = 1}};
  testing::internal::CaptureStdout();
  TrainingReport report(plan, {}, {.num_steps = 1400, .log_every = 1299});
  for (int step = 0; step < 1300; ++step) report.add(report_of(step, step < 1000 ? 0.01 : 1));
  report.finish();
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("  1:40 to go"));
}

// `loss 4.876195, loss 4.876195`.
TEST(TrainingReport, ALossIsSaidOnce) {
  EXPECT_THAT(printed({.num_steps = 1}), HasSubstr("  loss 3.000000, accuracy 0.500000  "));
}

// One line that erased itself: no history, and --log-every did nothing.
TEST(TrainingReport, ATerminalHasTheSameLines) {
  const std::string text = printed({.num_steps = 21, .log_every = 10, .columns = 200});
  for (const char* step : {"step      0  ", "step     10  ", "step     20  "}) {
    EXPECT_THAT(text, HasSubstr(std::string("\r\033[K") + step));
  }
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
}

// At 100 columns it wrapped, and what had wrapped stayed.
TEST(TrainingReport, NothingThatIsWrittenOverWraps) {
  const std::string text = printed({.num_steps = 3, .log_every = 2, .columns = 30});
  const std::string clear = "\r\033[K";
  const std::size_t begin = text.find(clear + "step      1  ");
  ASSERT_NE(begin, std::string::npos) << text;
  EXPECT_EQ(text.find('\r', begin + 1) - begin, clear.size() + 29);
}

}  // namespace
}  // namespace trireme::command
