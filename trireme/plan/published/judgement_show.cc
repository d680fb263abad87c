#include "trireme/plan/published/judgement_show.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "trireme/plan/graph/text_table.h"

namespace trireme::published {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr std::size_t kSourceLength = 56, kDeviceLength = 20;

std::string percent(double part) { return fmt::format("{:.1f}", 100 * part); }
std::string correlation(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.3f}", value);
}

std::string name_of(const std::string& group) {
  const auto at = group.find(" @ ");
  if (at == std::string::npos) return group;
  return graph::shortened(group.substr(0, at), kSourceLength) +
         graph::shortened(group.substr(at), kDeviceLength);
}

void add_group(const JudgedGroup& group, graph::Table& table) {
  table.add({name_of(group.name), std::to_string(group.num_cases), percent(group.predicted.median),
             percent(group.predicted.mean), percent(group.predicted.worst),
             percent(group.predicted.bias), correlation(group.predicted.rank_correlation),
             percent(group.linear.median), percent(group.linear.mean),
             correlation(group.linear.rank_correlation),
             group.num_with_memory == 0 ? "-" : percent(group.memory.median)});
}

std::string show_achieved(const analytic::AchievedByDevice& achieved) {
  if (achieved.empty()) return "";
  graph::Table devices({"device", ">matrix", ">memory", ">link", ">network"});
  for (const auto& [device, parts] : achieved) {
    devices.add({device.empty() ? "others" : device, fmt::format("{:.3f}", parts.matrix),
                 fmt::format("{:.3f}", parts.memory), fmt::format("{:.3f}", parts.link),
                 fmt::format("{:.3f}", parts.network)});
  }
  std::string text = "\nparts of the makers' numbers that were achieved\n" + devices.text() +
                     "\nof programs, whatever the device\n ";
  const analytic::AchievedParts& all = achieved_of(achieved, "");
  for (const analytic::AchievedField& field : analytic::achieved_fields()) {
    if (!field.of_device) text += fmt::format(" {} {:.3g}", field.name, all.*field.value);
  }
  return text + "\n";
}

std::string show_rows(const Judgement& judgement) {
  graph::Table table({">row", "model", "layout", ">measured s", ">predicted s", ">error %",
                      ">linear fit %", ">memory GiB", ">predicted"});
  for (const JudgedRun& one : judgement.runs) {
    const double measured = one.run.memory_bytes;
    table.add({std::to_string(one.run.row), one.run.shape.name, to_text(one.run.layout),
               fmt::format("{:.3f}", one.run.step_s), fmt::format("{:.3f}", one.step_s),
               fmt::format("{:+.1f}", 100 * (one.step_s / one.run.step_s - 1)),
               fmt::format("{:+.1f}", 100 * (one.linear_s / one.run.step_s - 1)),
               measured == 0 ? "-" : fmt::format("{:.1f}", measured / kGiB),
               measured == 0 ? "-" : fmt::format("{:.1f}", one.memory_bytes / kGiB)});
  }
  return "\njudged runs\n" + table.text();
}

std::string show_skipped(const RunCases& cases) {
  if (cases.skipped.empty()) return "";
  std::map<std::string, std::vector<int>> rows;
  for (const SkippedRun& one : cases.skipped) rows[one.reason].push_back(one.row);
  std::string text = fmt::format("\nleft out: {} rows\n", cases.skipped.size());
  for (const auto& [reason, numbers] : rows) {
    std::string list;
    constexpr std::size_t kMost = 8;
    for (std::size_t i = 0; i < std::min(kMost, numbers.size()); ++i) {
      list += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
    }
    text += fmt::format("  {}: {}, rows {}{}\n", reason, numbers.size(), list,
                        numbers.size() > kMost ? ", .." : "");
  }
  return text;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const ErrorSummary& summary) {
  return {{"median", number(summary.median)},
          {"mean", number(summary.mean)},
          {"worst", number(summary.worst)},
          {"bias", number(summary.bias)},
          {"rank_correlation", number(summary.rank_correlation)}};
}

Json json_of(const JudgedGroup& group) {
  Json json = {{"name", group.name},
               {"cases", group.num_cases},
               {"predicted", json_of(group.predicted)},
               {"linear", json_of(group.linear)},
               {"memory", nullptr}};
  if (group.num_with_memory > 0) json["memory"] = json_of(group.memory);
  return json;
}

Json json_of(const JudgedRun& one) {
  const bool has_memory = one.run.memory_bytes > 0;
  return {{"row", one.run.row},
          {"group", one.run.group()},
          {"model", one.run.shape.name},
          {"measured_s", one.run.step_s},
          {"predicted_s", one.step_s},
          {"linear_s", one.linear_s},
          {"measured_bytes", has_memory ? Json(one.run.memory_bytes) : Json(nullptr)},
          {"predicted_bytes", one.memory_bytes}};
}

}  // namespace

std::string show(const Judgement& judgement, const RunCases& cases, bool has_rows) {
  graph::Table table({"judged group", ">runs", ">median %", ">mean %", ">worst %", ">bias %",
                      ">rank corr.", ">linear: median %", ">mean %", ">rank corr.", ">memory %"});
  for (const JudgedGroup& group : judgement.groups) add_group(group, table);
  if (judgement.groups.size() > 1) add_group(judgement.all, table);
  std::string text = fmt::format(
      "{} of {} rows can be predicted; {} calibrate{}, {} are judged\n\n", cases.cases.size(),
      cases.cases.size() + cases.skipped.size(), judgement.num_calibration,
      judgement.achieved.empty() ? " in the last turn" : "", judgement.runs.size());
  text += table.text();
  text += show_achieved(judgement.achieved);
  if (has_rows) text += show_rows(judgement);
  return text + show_skipped(cases);
}

Json to_json(const Judgement& judgement, const RunCases& cases) {
  Json groups = Json::array(), runs = Json::array(), skipped = Json::array();
  for (const JudgedGroup& group : judgement.groups) groups.push_back(json_of(group));
  for (const JudgedRun& one : judgement.runs) runs.push_back(json_of(one));
  for (const SkippedRun& one : cases.skipped) {
    skipped.push_back({{"row", one.row}, {"reason", one.reason}, {"detail", one.detail}});
  }
  Json achieved = Json::object();
  for (const auto& [device, parts] : judgement.achieved) {
    Json& json = achieved[device.empty() ? "others" : device];
    for (const analytic::AchievedField& field : analytic::achieved_fields()) {
      json[std::string(field.name)] = parts.*field.value;
    }
  }
  return {{"calibration_runs", judgement.num_calibration},
          {"achieved", achieved},
          {"groups", groups},
          {"all", json_of(judgement.all)},
          {"runs", runs},
          {"skipped", skipped}};
}

}  // namespace trireme::published
