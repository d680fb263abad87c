#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "trireme/plan/graph/text_table.h"
#include "trireme/plan/partition/front.h"

namespace trireme::partition {
namespace {

constexpr int kPictureColumns = 60;
constexpr int kPictureRows = 12;

std::int64_t bytes_of(const layout::Plan& plan) {
  return layout::largest_peak_bytes(plan.prediction->peak_bytes);
}

std::string milliseconds_of(double ms) {
  char text[400];
  std::snprintf(text, sizeof text, "%.3f", ms);
  return text;
}

/// `2 of 4`, `all`, or nothing for none.
std::string stages_with(const layout::Plan& plan, bool layout::Stage::* has) {
  const auto num = std::count_if(plan.stages.begin(), plan.stages.end(),
                                 [has](const layout::Stage& stage) { return stage.*has; });
  if (num == 0) return "";
  const auto all = static_cast<std::ptrdiff_t>(plan.stages.size());
  return num == all ? "all" : std::to_string(num) + " of " + std::to_string(all);
}

std::string recompute_text(const layout::Plan& plan) {
  const bool has_regions = std::ranges::any_of(
      plan.stages, [](const layout::Stage& stage) { return !stage.regions.empty(); });
  return stages_with(plan, &layout::Stage::recompute) + (has_regions ? ", in regions" : "");
}

std::string shards_text(const layout::Plan& plan) {
  if (plan.sharded_parameters) return "parameters";
  return plan.sharded_state ? "state" : "";
}

std::string table_text(const std::vector<layout::Plan>& plans) {
  graph::Table table({">plan", ">step ms", ">peak", ">ranks", ">stages", ">replicas", "schedule",
                      "recompute", "offload", "in shards"});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const layout::Plan& plan = plans[i];
    const layout::Role& role = layout::train_role(plan);
    table.add({std::to_string(i), milliseconds_of(plan.prediction->step_ms),
               graph::bytes_text(bytes_of(plan)), std::to_string(role.num_ranks()),
               std::to_string(plan.stages.size()), std::to_string(role.mesh.data),
               plan.schedule.name, recompute_text(plan), stages_with(plan, &layout::Stage::offload),
               shards_text(plan)});
  }
  return table.text();
}

/// Where `value` is between the ends, in `count` places.
int place_between(double value, double least, double most, int count) {
  if (most <= least) return 0;
  return static_cast<int>(std::lround((value - least) / (most - least) * (count - 1)));
}

/// Peak upwards, step to the right; a digit is the plan's number, `*` one above 9.
std::string picture_text(const std::vector<layout::Plan>& plans) {
  const layout::Plan &fast = plans.front(), &small = plans.back();
  std::vector<std::string> rows(kPictureRows, std::string(kPictureColumns, ' '));
  for (std::size_t i = plans.size(); i-- > 0;) {
    const int column = place_between(plans[i].prediction->step_ms, fast.prediction->step_ms,
                                     small.prediction->step_ms, kPictureColumns);
    const int height =
        place_between(static_cast<double>(bytes_of(plans[i])), static_cast<double>(bytes_of(small)),
                      static_cast<double>(bytes_of(fast)), kPictureRows);
    rows[kPictureRows - 1 - height][column] = i < 10 ? static_cast<char>('0' + i) : '*';
  }
  const std::string most = graph::bytes_text(bytes_of(fast)),
                    least = graph::bytes_text(bytes_of(small));
  const std::size_t width = std::max(most.size(), least.size());
  const auto labelled = [&](const std::string& label, const std::string& row) {
    return "  " + std::string(width - label.size(), ' ') + label + " |" +
           row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = "peak\n";
  for (int i = 0; i < kPictureRows; ++i) {
    const std::string label = i == 0 ? most : i + 1 == kPictureRows ? least : "";
    text += labelled(label, rows[i]);
  }
  const std::string from = milliseconds_of(fast.prediction->step_ms),
                    to = milliseconds_of(small.prediction->step_ms) + " ms a step";
  const std::size_t gap = std::max<std::size_t>(1, kPictureColumns - from.size());
  return text + "  " + std::string(width, ' ') + " +" + std::string(kPictureColumns, '-') + "\n" +
         std::string(width + 4, ' ') + from + std::string(gap, ' ') + to + "\n";
}

}  // namespace

std::string show_front(const std::vector<layout::Plan>& plans) {
  if (plans.empty()) return "";
  std::string text = "plans of which none is beaten in both step and peak\n" + table_text(plans);
  if (plans.size() > 1) text += "\n" + picture_text(plans);
  return text;
}

}  // namespace trireme::partition
