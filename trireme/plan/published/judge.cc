#include "trireme/plan/published/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/analytic/predict.h"
#include "trireme/plan/published/calibrate.h"
#include "trireme/plan/published/linear_fit.h"

namespace trireme::published {
namespace {

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// Rank of each value from 1, equal ones with the mean of theirs.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(begin + end + 1) / 2;
    }
    begin = end;
  }
  return ranks;
}

std::string lower(const std::string& text) {
  std::string result = text;
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string list_of_groups(std::span<const RunCase> cases) {
  std::map<std::string, int> sizes;
  for (const RunCase& one : cases) ++sizes[one.group()];
  std::string text;
  for (const auto& [group, size] : sizes) text += fmt::format("\n  {} ({})", group, size);
  return text;
}

/// Whether each case is meant by one of the words.
std::vector<bool> meant(std::span<const RunCase> cases, const std::vector<std::string>& words) {
  std::vector<bool> result(cases.size());
  for (const std::string& word : words) {
    bool has_any = false;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (!is_meant(word, cases[i])) continue;
      result[i] = true;
      has_any = true;
    }
    if (has_any) continue;
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("no run's source contains '{}'; the groups are:{}", word,
                            list_of_groups(cases)));
  }
  return result;
}

JudgedGroup summary_of(const std::string& name, const std::vector<const JudgedRun*>& runs) {
  JudgedGroup group{name, runs.size(), {}, {}, 0, {}};
  std::vector<double> predicted, linear, measured, memory, measured_memory;
  for (const JudgedRun* one : runs) {
    predicted.push_back(one->step_s);
    linear.push_back(one->linear_s);
    measured.push_back(one->run.step_s);
    if (one->run.memory_bytes == 0) continue;
    memory.push_back(one->memory_bytes);
    measured_memory.push_back(one->run.memory_bytes);
  }
  if (runs.empty()) return group;
  group.predicted = summarize(predicted, measured);
  group.linear = summarize(linear, measured);
  group.num_with_memory = memory.size();
  if (!memory.empty()) group.memory = summarize(memory, measured_memory);
  return group;
}

void summarize_groups(Judgement& judgement) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<const JudgedRun*>> groups;
  std::vector<const JudgedRun*> all;
  for (const JudgedRun& one : judgement.runs) {
    auto& group = groups[one.run.group()];
    if (group.empty()) names.push_back(one.run.group());
    group.push_back(&one);
    all.push_back(&one);
  }
  for (const std::string& name : names) {
    judgement.groups.push_back(summary_of(name, groups[name]));
  }
  judgement.all = summary_of("all", all);
}

/// Calibrates on one part of the cases and adds the other, judged.
void add_judged(std::span<const RunCase> calibration, std::span<const RunCase> judged,
                Judgement& judgement) {
  judgement.num_calibration = calibration.size();
  judgement.achieved = calibrate(calibration);
  const LinearFit linear(calibration);
  analytic::PipelineClocks clocks;
  for (const RunCase& one : judged) {
    const auto& parts = achieved_of(judgement.achieved, one.machine.accelerator.name);
    const analytic::AnalyticStep step =
        analytic::predict(one.shape, one.machine, one.layout, parts, clocks);
    judgement.runs.push_back({one, step.step_s, linear.predict(one), step.memory.total()});
  }
}

/// In which turn a case is left out.
std::string turn_of(const RunCase& one, std::size_t index, LeaveOut what) {
  switch (what) {
    case LeaveOut::kDevice:
      return one.machine.accelerator.name;
    case LeaveOut::kSource:
      return one.source;
    case LeaveOut::kFifth:
      return std::to_string(index % 5);
    case LeaveOut::kGroup:
      break;
  }
  return one.group();
}

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const auto n = static_cast<double>(x.size());
  const double mean = (n + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (x.size() < 3 || xx == 0 || yy == 0) return std::numeric_limits<double>::quiet_NaN();
  return xy / std::sqrt(xx * yy);
}

ErrorSummary summarize(std::span<const double> predicted, std::span<const double> measured) {
  std::vector<double> errors, sizes;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    errors.push_back(predicted[i] / measured[i] - 1);
    sizes.push_back(std::abs(errors.back()));
  }
  const double sum = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  return {.median = median_of(sizes),
          .mean = sum / static_cast<double>(sizes.size()),
          .worst = *std::ranges::max_element(sizes),
          .bias = median_of(errors),
          .rank_correlation = rank_correlation(predicted, measured)};
}

bool is_meant(const std::string& word, const RunCase& one) {
  if (word == "all") return true;
  const auto at = word.find('@');
  const std::string source = lower(word.substr(0, at));
  const std::string device = at == std::string::npos ? "" : lower(word.substr(at + 1));
  return lower(one.source).find(source) != std::string::npos &&
         lower(one.device).find(device) != std::string::npos;
}

Judgement judge(std::span<const RunCase> cases, const std::vector<std::string>& calibrate_words,
                const std::vector<std::string>& judge_words) {
  const std::vector<bool> is_calibration = meant(cases, calibrate_words);
  const std::vector<bool> is_judged = meant(cases, judge_words);
  std::vector<RunCase> calibration, judged;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (is_calibration[i] && is_judged[i]) {
      throw Error(ErrorKind::kInvalidArgument,
                  fmt::format("row {} of {} would calibrate and be judged; --calibrate and "
                              "--judge must mean different runs",
                              cases[i].row, cases[i].source));
    }
    if (is_calibration[i]) calibration.push_back(cases[i]);
    if (judge_words.empty() ? !is_calibration[i] : is_judged[i]) judged.push_back(cases[i]);
  }
  Judgement result;
  add_judged(calibration, judged, result);
  summarize_groups(result);
  return result;
}

Judgement judge_each(std::span<const RunCase> cases, LeaveOut what) {
  std::vector<std::string> keys, key_of;
  for (const RunCase& one : cases) {
    key_of.push_back(turn_of(one, key_of.size(), what));
    if (std::ranges::find(keys, key_of.back()) == keys.end()) keys.push_back(key_of.back());
  }
  if (keys.size() < 2) {
    throw Error(ErrorKind::kInvalidArgument,
                "there is one group alone, and nothing to calibrate with when it is left out");
  }
  Judgement result;
  for (const std::string& left_out : keys) {
    std::vector<RunCase> calibration, judged;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      (key_of[i] == left_out ? judged : calibration).push_back(cases[i]);
    }
    add_judged(calibration, judged, result);
  }
  result.achieved.clear();
  summarize_groups(result);
  return result;
}

}  // namespace trireme::published
