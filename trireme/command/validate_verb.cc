#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/command/verbs.h"
#include "trireme/error.h"
#include "trireme/plan/published/judge.h"
#include "trireme/plan/published/judgement_show.h"
#include "trireme/plan/published/run_case.h"
#include "trireme/plan/published/run_row.h"

namespace trireme::command {
namespace {

struct ValidateVerbOptions {
  std::vector<std::string> files;
  std::vector<std::string> calibrate;
  std::vector<std::string> judged;
  std::optional<published::LeaveOut> leave_out;
  bool has_rows = false;
};

published::Judgement judge(const ValidateVerbOptions& options, const published::RunCases& cases) {
  if (options.leave_out) {
    if (!options.calibrate.empty() || !options.judged.empty()) {
      throw Error(ErrorKind::kInvalidArgument,
                  "--leave-out takes every group in turn; leave --calibrate and --judge out");
    }
    return published::judge_each(cases.cases, *options.leave_out);
  }
  if (options.calibrate.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "name the runs to calibrate with, --calibrate SOURCE.., or leave out every group "
                "in turn, --leave-out group");
  }
  return published::judge(cases.cases, options.calibrate, options.judged);
}

}  // namespace

Body add_validate(CLI::App& app, Context& context) {
  auto options = std::make_shared<ValidateVerbOptions>();
  app.add_option("runs", options->files, "CSV files of published runs, all of one form")
      ->required();
  app.add_option("--calibrate", options->calibrate,
                 "Fit what devices achieve on runs whose source contains one of these words; "
                 "`source@device`: and their device; `all`");
  app.add_option("--judge", options->judged, "Judge these runs; without it all others");
  const std::map<std::string, published::LeaveOut> parts = {
      {"group", published::LeaveOut::kGroup},
      {"source", published::LeaveOut::kSource},
      {"device", published::LeaveOut::kDevice},
      {"fifth", published::LeaveOut::kFifth}};
  app.add_option_function<std::string>(
         "--leave-out",
         [options, parts](const std::string& word) { options->leave_out = parts.at(word); },
         "Instead: judge each group, source, kind of device or fifth of the runs by a calibration "
         "on all others")
      ->check(CLI::IsMember({"group", "source", "device", "fifth"}))
      ->option_text("{group,source,device,fifth}");
  app.add_flag("--rows", options->has_rows, "Print every judged run too");
  app.footer(
      "Example: trireme validate benchmarks/simulator/runs.csv --calibrate vTrain --judge "
      "2104.04473\n"
      "As a page with plots: trireme validate .. --json > judged.json && trireme report "
      "judged.json\n"
      "Beside each error stands that of a linear fit with 8 coefficients on the same runs.");
  return [options, &context] {
    std::vector<published::RunRow> rows;
    for (const std::string& file : options->files) {
      const std::vector<published::RunRow> more = published::read_runs(file);
      rows.insert(rows.end(), more.begin(), more.end());
    }
    const published::RunCases cases = published::make_cases(rows);
    const published::Judgement judgement = judge(*options, cases);
    print(context, published::to_json(judgement, cases),
          published::show(judgement, cases, options->has_rows));
    return 0;
  };
}

}  // namespace trireme::command
