#include "trireme/command/run_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/json_field.h"
#include "trireme/plan/graph/table.h"

namespace trireme::command {
namespace {

const std::string kUnknown = "-";

std::string milliseconds(const std::optional<JsonField>& field) {
  return field ? fmt::format("{:.1f}", field->real()) : kUnknown;
}

/// Of the rank that has most.
std::string largest_bytes(const std::optional<JsonField>& field) {
  if (!field) return kUnknown;
  std::int64_t largest = 0;
  for (const JsonField& rank : field->items()) largest = std::max(largest, rank.integer(0));
  return graph::bytes_text(largest);
}

/// Of each rank a number by kind; the largest sum.
std::string largest_sum(const std::optional<JsonField>& field) {
  if (!field) return kUnknown;
  double largest = 0;  // a real: no sum of file's numbers overflows it
  for (const JsonField& rank : field->items()) {
    if (!rank.json().is_object()) rank.fail_expected("an object");
    double sum = 0;
    for (const auto& [kind, bytes] : rank.json().items()) {
      sum += static_cast<double>(JsonField(bytes, rank.place() + "." + kind).integer(0));
    }
    largest = std::max(largest, sum);
  }
  return largest < 1e18 ? graph::bytes_text(static_cast<std::int64_t>(largest)) : kUnknown;
}

std::vector<std::string> segment_row(const JsonField& field) {
  JsonObject segment(field);
  const auto whole = [&](const char* name) {
    return std::to_string(segment.required(name).integer());
  };
  return {whole("first_step") + ".." + whole("end_step"),
          whole("ranks"),
          whole("stages") + " x " + whole("replicas"),
          segment.required("schedule").text(),
          milliseconds(segment.optional("predicted_step_ms")),
          milliseconds(segment.optional("median_step_ms")),
          largest_sum(segment.optional("predicted_peak_bytes")),
          largest_bytes(segment.optional("peak_bytes")),
          segment.required("ended").text()};
}

}  // namespace

std::string run_text(const Json& body, const std::string& origin) {
  JsonObject run(JsonField(body, origin));
  JsonObject batch(run.required("batch"));
  graph::Table table({"steps", ">ranks", "stages x replicas", "schedule", ">predicted ms",
                      ">measured ms", ">predicted peak", ">measured peak", "ended"});
  for (const JsonField& segment : run.required("segments").items()) {
    table.add(segment_row(segment));
  }
  return fmt::format("run of {}, seed {}\n  batch of {} in {} lanes, microbatches of {}\n\n",
                     run.required("model").text(), run.required("seed").integer(),
                     batch.required("global_batch").integer(), batch.required("lanes").integer(),
                     batch.required("microbatch").integer()) +
         "segments\n" + table.text();
}

}  // namespace trireme::command
