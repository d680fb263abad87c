#include <memory>
#include <string>
#include <vector>

#include "trireme/arguments/words.h"
#include "trireme/command/verbs.h"
#include "trireme/error.h"
#include "trireme/plan/published/judge.h"
#include "trireme/plan/published/judgement_show.h"
#include "trireme/plan/published/run_case.h"
#include "trireme/plan/published/run_row.h"

namespace trireme::command {
namespace {

enum class LeaveOutWord : std::uint8_t { kNothing, kGroup, kSource, kDevice };

struct ValidateVerbOptions {
  std::string file;
  std::vector<std::string> calibrate;
  std::vector<std::string> judged;
  LeaveOutWord leave_out = LeaveOutWord::kNothing;
  bool has_rows = false;
};

published::Judgement judge(const ValidateVerbOptions& options, const published::RunCases& cases) {
  const bool has_groups = !options.calibrate.empty() || !options.judged.empty();
  switch (options.leave_out) {
    case LeaveOutWord::kGroup:
    case LeaveOutWord::kSource:
    case LeaveOutWord::kDevice:
      if (has_groups) {
        throw Error(ErrorKind::kInvalidArgument,
                    "--leave-out takes every group in turn; leave --calibrate and --judge out");
      }
      break;
    case LeaveOutWord::kNothing:
      if (!options.calibrate.empty()) {
        return published::judge(cases.cases, options.calibrate, options.judged);
      }
      throw Error(ErrorKind::kInvalidArgument,
                  "name the runs to calibrate with, --calibrate SOURCE.., or leave out every group "
                  "in turn, --leave-out group");
  }
  if (options.leave_out == LeaveOutWord::kGroup) {
    return published::judge_each(cases.cases, published::LeaveOut::kGroup);
  }
  return published::judge_each(cases.cases, options.leave_out == LeaveOutWord::kSource
                                                ? published::LeaveOut::kSource
                                                : published::LeaveOut::kDevice);
}

}  // namespace

Body add_validate(CLI::App& app, Context& context) {
  auto options = std::make_shared<ValidateVerbOptions>();
  app.add_option("runs", options->file, "CSV file of published runs")->required();
  app.add_option("--calibrate", options->calibrate,
                 "Fit what devices achieve on runs whose source contains one of these words; "
                 "`source@device`: and their device; `all`");
  app.add_option("--judge", options->judged, "Judge these runs; without it all others");
  arguments::add_words<LeaveOutWord>(
      app, "--leave-out", options->leave_out,
      "Instead: judge each group, source or kind of device by a calibration on all others",
      {{"nothing", LeaveOutWord::kNothing},
       {"group", LeaveOutWord::kGroup},
       {"source", LeaveOutWord::kSource},
       {"device", LeaveOutWord::kDevice}});
  app.add_flag("--rows", options->has_rows, "Print every judged run too");
  app.footer(
      "Example: trireme validate benchmarks/simulator/runs.csv --calibrate vTrain --judge "
      "2104.04473\n"
      "Beside each error stands that of a linear fit with 8 coefficients on the same runs.");
  return [options, &context] {
    const published::RunCases cases = published::make_cases(published::read_runs(options->file));
    const published::Judgement judgement = judge(*options, cases);
    print(context, published::to_json(judgement, cases),
          published::show(judgement, cases, options->has_rows));
    return 0;
  };
}

}  // namespace trireme::command
