#include "trireme/plan/analytic/search_show.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/text_table.h"

namespace trireme::analytic {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kDay = 24.0 * 3600;

const char* word(RecomputeKind kind) {
  switch (kind) {
    case RecomputeKind::kNone:
      return "none";
    case RecomputeKind::kSelective:
      return "scores";
    case RecomputeKind::kHalf:
      return "half";
    case RecomputeKind::kFull:
      break;
  }
  return "full";
}

const char* word(ShardingKind kind) {
  switch (kind) {
    case ShardingKind::kNone:
      return "none";
    case ShardingKind::kState:
      return "state";
    case ShardingKind::kGradients:
      return "gradients";
    case ShardingKind::kParameters:
      break;
  }
  return "parameters";
}

double days_of(const ShownSearch& shown, const FoundLayout& one) {
  const double samples = shown.num_tokens > 0
                             ? shown.num_tokens / static_cast<double>(one.layout.seq_len)
                             : shown.num_samples;
  return samples / one.step.samples_per_s(one.layout) / kDay;
}

std::vector<std::string> row_of(const ShownSearch& shown, const FoundLayout& one) {
  const TrainLayout& layout = one.layout;
  std::vector<std::string> row = {std::to_string(layout.tensor),
                                  std::to_string(layout.pipeline),
                                  std::to_string(layout.virtual_stages),
                                  std::to_string(layout.data),
                                  std::to_string(layout.context),
                                  std::to_string(layout.microbatch),
                                  word(layout.recompute),
                                  word(layout.sharding),
                                  fmt::format("{:.3f}", one.step.step_s),
                                  fmt::format("{:.1f}", one.step.samples_per_s(layout)),
                                  fmt::format("{:.1f}", one.step.memory.total() / kGiB),
                                  limit_of(one.step)};
  if (!shown.has_length()) return row;
  row.push_back(fmt::format("{:.2f}", days_of(shown, one)));
  if (shown.goodput)
    row.push_back(fmt::format("{:.2f}", days_of(shown, one) / shown.goodput->part));
  return row;
}

graph::Table table_of(const ShownSearch& shown) {
  std::vector<std::string> heads = {">tensor",  ">pipeline",   ">a rank",   ">data",
                                    ">context", ">microbatch", "recompute", "sharded",
                                    ">step s",  ">samples/s",  ">GiB",      "limited by"};
  if (shown.has_length()) heads.emplace_back(">days");
  if (shown.has_length() && shown.goodput) heads.emplace_back(">with failures");
  return graph::Table(heads);
}

std::string split_of(const PublishedLayout& source) {
  if (source.layout.tensor > 0) return to_text(source.layout);
  if (source.layout.data == 0) return "the split is not published";
  const std::int64_t devices = source.num_hosts * machine(source.machine).devices_per_host;
  return fmt::format("{} devices a replica x data {}", devices / source.layout.data,
                     source.layout.data);
}

std::string show_published(const ShownSearch& shown) {
  if (shown.sources.empty()) return "";
  std::string text = "\npublished\n";
  for (std::size_t i = 0; i < shown.sources.size(); ++i) {
    const PublishedLayout& source = shown.sources[i];
    text += fmt::format("  {} x {}: {}", source.num_hosts, source.machine, split_of(source));
    if (source.step_s > 0) text += fmt::format("; {:.2f} s a step", source.step_s);
    if (source.samples_per_s > 0) text += fmt::format("; {:.0f} samples/s", source.samples_per_s);
    if (source.days > 0) text += fmt::format("; {:.2f} days", source.days);
    const FoundLayout& predicted = shown.published[i];
    if (predicted.step.step_s > 0) {
      if (source.layout.tensor == 0) text += "; best of these " + to_text(predicted.layout);
      text += fmt::format("; predicted {:.2f} s", predicted.step.step_s);
      if (shown.has_length()) text += fmt::format(", {:.2f} days", days_of(shown, predicted));
    }
    text += fmt::format(" [{}]\n", source.source);
  }
  return text;
}

std::string goodput_text(const ShownSearch& shown) {
  if (!shown.goodput) return "";
  return fmt::format(
      "\na failure every {:.1f} hours; with a checkpoint every {:.1f} minutes {:.1f} % of the time "
      "makes progress that lasts\n",
      shown.goodput->mtbf_s / 3600, shown.goodput->interval_s / 60, 100 * shown.goodput->part);
}

/// A warning where nothing of these devices, or of such models, was compared with a run.
std::string fitted_text(const ShownSearch& shown) {
  const std::string& device = shown.machine.accelerator.name;
  std::string text;
  if (!is_fitted(device))
    text += "no published run on " + device + " was compared with: steps may be far off\n";
  if (!shown.shape.is_transformer()) {
    text +=
        "of convolution networks ResNet-50 alone was compared: its steps are off by up to 30 %\n";
  }
  return text.empty() ? text : "\n" + text;
}

Json json_of(const AnalyticStep& step) {
  const MemoryByKind& memory = step.memory;
  return {{"step_s", step.step_s},
          {"compute_s", step.compute_s},
          {"tensor_s", step.tensor_s},
          {"transfer_s", step.transfer_s},
          {"bubble_s", step.bubble_s},
          {"reduction_s", step.reduction_s},
          {"update_s", step.update_s},
          {"other_s", step.other_s},
          {"bytes",
           {{"values", memory.values},
            {"gradients", memory.gradients},
            {"state", memory.state},
            {"activations", memory.activations},
            {"working", memory.working},
            {"driver", memory.driver}}},
          {"fullest_rank", step.fullest_rank}};
}

Json json_of(const TrainLayout& layout) {
  return {{"tensor", layout.tensor},
          {"pipeline", layout.pipeline},
          {"stages_per_rank", layout.virtual_stages},
          {"data", layout.data},
          {"context", layout.context},
          {"microbatch", layout.microbatch},
          {"global_batch", layout.global_batch},
          {"seq_len", layout.seq_len},
          {"recompute", word(layout.recompute)},
          {"sharded", word(layout.sharding)}};
}

Json json_of(const ShownSearch& shown, const FoundLayout& one) {
  Json json = json_of(one.step);
  json["layout"] = json_of(one.layout);
  json["samples_per_s"] = one.step.samples_per_s(one.layout);
  json["limited_by"] = limit_of(one.step);
  if (shown.has_length()) json["days"] = days_of(shown, one);
  if (shown.has_length() && shown.goodput) {
    json["days_with_failures"] = days_of(shown, one) / shown.goodput->part;
  }
  return json;
}

/// The fastest with as many replicas as the published layout has; that one, without a step, where none is possible.
FoundLayout best_with_replicas(const AchievedByDevice& achieved, const ShownSearch& shown,
                               const TrainLayout& published) {
  LayoutSearch search = shown.search;
  search.replicas = published.data;
  try {
    return search_layouts(shown.shape, shown.machine, achieved, search).best.front();
  } catch (
      const Error& error) {  // Another batch, or longer samples: nothing stands beside it then.
    const bool is_impossible = error.kind() == ErrorKind::kInvalidArgument ||
                               error.kind() == ErrorKind::kResourceExhausted;
    if (!is_impossible) throw;
    return {published, {}};
  }
}

}  // namespace

void add_published(const AchievedByDevice& achieved, ShownSearch& shown) {
  shown.sources = published_for(shown.shape.name, shown.machine.name, shown.search.num_hosts);
  PipelineClocks clocks;
  for (const PublishedLayout& source : shown.sources) {
    FoundLayout one{source.layout, {}};
    const Machine& where = machine(source.machine);
    const bool is_here =
        source.machine == shown.machine.name && source.num_hosts == shown.search.num_hosts;
    if (source.layout.tensor > 0) {
      one.step = predict(shown.shape, where, source.layout,
                         achieved_of(achieved, where.accelerator.name), clocks);
    } else if (source.layout.data > 0 && is_here) {
      one = best_with_replicas(achieved, shown, source.layout);
    }
    shown.published.push_back(one);
  }
}

std::string show(const ShownSearch& shown) {
  const Machine& machine = shown.machine;
  std::string text = fmt::format(
      "{}: {:.2f} billion parameters; {} hosts {} of {} {}; batch {}\n"
      "{} layouts, {} of them fit into {:.0f} GiB\n\n",
      shown.shape.name, static_cast<double>(parameters(shown.shape)) / 1e9, shown.search.num_hosts,
      machine.name, machine.devices_per_host, machine.accelerator.name, shown.search.global_batch,
      shown.found.num_tried, shown.found.num_fitting,
      shown.search.memory_part * machine.accelerator.memory_bytes / kGiB);
  graph::Table table = table_of(shown);
  for (const FoundLayout& one : shown.found.best) table.add(row_of(shown, one));
  return text + table.text() + goodput_text(shown) + fitted_text(shown) + show_published(shown);
}

Json to_json(const ShownSearch& shown) {
  Json best = Json::array(), front = Json::array(), published = Json::array();
  for (const FoundLayout& one : shown.found.best) best.push_back(json_of(shown, one));
  for (const FoundLayout& one : shown.found.front) front.push_back(json_of(shown, one));
  for (std::size_t i = 0; i < shown.sources.size(); ++i) {
    const PublishedLayout& source = shown.sources[i];
    Json json = {
        {"machine", source.machine}, {"hosts", source.num_hosts}, {"source", source.source}};
    const auto add = [&json](const char* name, double value) {
      json[name] = value > 0 ? Json(value) : Json(nullptr);
    };
    add("step_s", source.step_s);
    add("samples_per_s", source.samples_per_s);
    add("days", source.days);
    add("predicted_step_s", shown.published[i].step.step_s);
    if (shown.published[i].step.step_s > 0) json["predicted"] = json_of(shown, shown.published[i]);
    published.push_back(std::move(json));
  }
  Json json = {{"model", shown.shape.name},
               {"parameters", parameters(shown.shape)},
               {"machine", shown.machine.name},
               {"compared_with_runs",
                is_fitted(shown.machine.accelerator.name) && shown.shape.is_transformer()},
               {"hosts", shown.search.num_hosts},
               {"tried", shown.found.num_tried},
               {"fitting", shown.found.num_fitting},
               {"best", best},
               {"front", front},
               {"published", published}};
  if (shown.goodput) {
    json["goodput"] = {{"part", shown.goodput->part},
                       {"interval_s", shown.goodput->interval_s},
                       {"mtbf_s", shown.goodput->mtbf_s}};
  }
  return json;
}

}  // namespace trireme::analytic
