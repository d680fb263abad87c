#include "trireme/session/run_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "trireme/base/json_field.h"
#include "trireme/error.h"
#include "trireme/plan/graph/text_table.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::session {
namespace {

const char* ending_of(const Segment& segment) {
  if (segment.stopped_at) return "stopped";
  return segment.measured ? "done" : "unknown";
}

Json to_json(const Segment& segment) {
  Json json = {{"first_step", segment.first_step},
               {"end_step", segment.end_step},
               {"plan", segment.plan},
               {"ranks", segment.ranks},
               {"stages", segment.stages},
               {"replicas", segment.replicas},
               {"schedule", segment.schedule},
               {"ended", ending_of(segment)}};
  if (segment.stopped_at) json["stopped_at"] = *segment.stopped_at;
  if (!segment.started.empty()) json["started"] = segment.started;
  if (!segment.host.empty()) json["host"] = segment.host;
  if (!segment.timeline.empty()) json["timeline"] = segment.timeline;
  if (segment.predicted_step_ms) {
    json["predicted_step_ms"] = real_to_json(*segment.predicted_step_ms);
    json["predicted_peak_bytes"] = segment.predicted_peak_bytes;
  }
  if (!segment.measured) return json;
  json["median_step_ms"] = real_to_json(segment.measured->median_step_ms);
  json["data_wait_fraction"] = real_to_json(segment.measured->data_wait_fraction);
  json["peak_bytes"] = segment.measured->peak_bytes;
  json["resident_peak_bytes"] = segment.measured->resident_peak_bytes;
  if (const auto over_profile = segment.measured->compute_over_profile) {
    json["compute_over_profile"] = real_to_json(*over_profile);
  }
  return json;
}

std::map<std::string, std::string> texts_from_json(const JsonField& field) {
  JsonObject object(field);
  std::map<std::string, std::string> result;
  for (const auto& [name, value] : field.json().items())
    result[name] = object.required(name).text();
  return result;
}

GivenOptions given_from_json(const JsonField& field) {
  JsonObject object(field);
  GivenOptions result;
  for (const auto& [name, value] : field.json().items()) {
    result[name] = object.required(name).list([](const JsonField& text) { return text.text(); });
  }
  return result;
}

std::map<std::string, std::int64_t> bytes_from_json(const JsonField& field) {
  JsonObject object(field);
  std::map<std::string, std::int64_t> result;
  for (const auto& [name, value] : field.json().items()) {
    result[name] = object.required(name).integer(0);
  }
  return result;
}

std::optional<Measured> measured_from_json(JsonObject& object) {
  const auto median = object.optional("median_step_ms");
  if (!median) return std::nullopt;
  const auto waited = object.optional("data_wait_fraction");
  const auto resident = object.optional("resident_peak_bytes");
  const auto over_profile = object.optional("compute_over_profile");
  const auto read_bytes = [](const JsonField& bytes) { return bytes.integer(0); };
  return Measured{
      .median_step_ms = median->real(),
      .data_wait_fraction = waited ? waited->real() : 0,
      .peak_bytes = object.required("peak_bytes").list(read_bytes),
      .resident_peak_bytes = resident ? resident->list(read_bytes) : std::vector<std::int64_t>(),
      .compute_over_profile = over_profile ? std::optional(over_profile->real()) : std::nullopt};
}

Segment segment_from_json(const JsonField& field) {
  JsonObject object(field);
  Segment segment;
  segment.first_step = object.required("first_step").integer(0);
  segment.end_step = object.required("end_step").integer(0);
  if (const auto at = object.optional("stopped_at")) segment.stopped_at = at->integer(0);
  if (const auto started = object.optional("started")) segment.started = started->text();
  if (const auto host = object.optional("host")) segment.host = host->text();
  segment.plan = object.required("plan").text();
  if (const auto timeline = object.optional("timeline")) segment.timeline = timeline->text();
  segment.ranks = object.required("ranks").index(1);
  segment.stages = object.required("stages").index(1);
  segment.replicas = object.required("replicas").index(1);
  segment.schedule = object.required("schedule").text();
  const JsonField ended = object.required("ended");
  if (const auto step = object.optional("predicted_step_ms")) {
    segment.predicted_step_ms = step->real();
    segment.predicted_peak_bytes = object.required("predicted_peak_bytes").list(bytes_from_json);
  }
  segment.measured = measured_from_json(object);
  if (ended.text() != ending_of(segment)) {
    ended.fail_expected(
        "'stopped' where there is 'stopped_at', 'done' where there are figures, else 'unknown'");
  }
  object.finish();
  return segment;
}

std::string milliseconds(const std::optional<double>& time) {
  return time ? fmt::format("{:.1f}", *time) : "-";
}

std::string predicted_peak(const Segment& segment) {
  if (segment.predicted_peak_bytes.empty()) return "-";
  return graph::bytes_text(layout::largest_peak_bytes(segment.predicted_peak_bytes));
}

std::string measured_peak(const Segment& segment) {
  if (!segment.measured || segment.measured->peak_bytes.empty()) return "-";
  const auto& ranks = segment.measured->peak_bytes;
  return graph::bytes_text(*std::max_element(ranks.begin(), ranks.end()));
}

std::vector<std::string> row(const Segment& segment) {
  std::optional<double> step_ms;
  if (segment.measured) step_ms = segment.measured->median_step_ms;
  return {fmt::format("{}..{}", segment.first_step, segment.stopped_at.value_or(segment.end_step)),
          std::to_string(segment.ranks),
          fmt::format("{} x {}", segment.stages, segment.replicas),
          segment.schedule,
          milliseconds(segment.predicted_step_ms),
          milliseconds(step_ms),
          predicted_peak(segment),
          measured_peak(segment),
          ending_of(segment)};
}

}  // namespace

std::string changes_text(const GivenOptions& before, const GivenOptions& now) {
  std::vector<std::string> changes;
  const auto value_of = [](const GivenOptions& options, const std::string& name) {
    const auto found = options.find(name);
    return found == options.end() ? std::string()
                                  : fmt::format("{}", fmt::join(found->second, ","));
  };
  std::set<std::string> names;
  for (const auto* options : {&before, &now}) {
    for (const auto& [name, values] : *options) names.insert(name);
  }
  for (const std::string& name : names) {
    const std::string old_value = value_of(before, name), value = value_of(now, name);
    if (value == old_value) continue;
    changes.push_back(fmt::format("--{} {} -> {}", name, old_value.empty() ? "(none)" : old_value,
                                  value.empty() ? "(none)" : value));
  }
  return fmt::format("{}", fmt::join(changes, ", "));
}

Json to_json(const RunDocument& document) {
  Json segments = Json::array();
  for (const Segment& segment : document.segments) segments.push_back(to_json(segment));
  Json json = {{"model", document.model},
               {"options", document.options},
               {"seed", document.seed},
               {"batch",
                {{"global_batch", document.batch.global_batch},
                 {"microbatch", document.batch.microbatch},
                 {"lanes", document.batch.lanes}}},
               {"segments", segments}};
  if (!document.given.empty()) json["given"] = document.given;
  return json;
}

void save(const RunDocument& document, const std::filesystem::path& path) {
  write_document(path, kRunDocument, to_json(document));
}

RunDocument load_run(const std::filesystem::path& path) {
  const Json body = read_document(path, kRunDocument);
  JsonObject object(JsonField(body, "'" + path.string() + "'"));
  RunDocument document;
  document.model = object.required("model").text();
  document.options = texts_from_json(object.required("options"));
  if (const auto given = object.optional("given")) document.given = given_from_json(*given);
  const JsonField seed = object.required("seed");
  if (!seed.json().is_number_unsigned()) seed.fail_expected("a whole number from 0 on");
  document.seed = seed.json().get<std::uint64_t>();
  JsonObject batch(object.required("batch"));
  document.batch.global_batch = batch.required("global_batch").integer(1);
  document.batch.microbatch = batch.required("microbatch").integer(1);
  document.batch.lanes = batch.required("lanes").integer(1);
  batch.finish();
  document.segments = object.required("segments").list(segment_from_json);
  object.finish();
  return document;
}

RunDocument load_kept_run(const std::filesystem::path& path) {
  try {
    return load_run(path);
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("{}; remove it to resume, with all options: checkpoints do "
                            "not need it, and a new one is begun without what was "
                            "run before",
                            error.message()));
  }
}

Segment segment_of(const layout::Plan& plan) {
  const layout::Role& role = layout::train_role(plan);
  Segment segment{.ranks = role.num_ranks(),
                  .stages = static_cast<int>(plan.stages.size()),
                  .replicas = role.mesh.data,
                  .schedule = plan.schedule.name};
  if (plan.prediction) {
    segment.predicted_step_ms = plan.prediction->step_ms;
    segment.predicted_peak_bytes = plan.prediction->peak_bytes;
  }
  return segment;
}

std::string show(const RunDocument& document) {
  graph::Table table({"steps", ">ranks", "stages x replicas", "schedule", ">predicted ms",
                      ">measured ms", ">predicted peak", ">measured peak", "ended"});
  for (const Segment& segment : document.segments) table.add(row(segment));
  return fmt::format("run of {}, seed {}\n  batch of {} in {} lanes, microbatches of {}\n\n",
                     document.model, document.seed, document.batch.global_batch,
                     document.batch.lanes, document.batch.microbatch) +
         "segments\n" + table.text();
}

}  // namespace trireme::session
