#include "trireme/command/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/files.h"
#include "trireme/base/json_field.h"
#include "trireme/plan/layout/manual.h"

namespace trireme::command {
namespace {

[[noreturn]] void fail(const std::string& action, const std::filesystem::path& path,
                       const std::string& problem) {
  throw Error(ErrorKind::kIo, "cannot " + action + " '" + path.string() + "': " + problem);
}

Json to_json(const Segment& segment) {
  Json json = {{"first_step", segment.first_step},
               {"end_step", segment.end_step},
               {"plan", segment.plan},
               {"ranks", segment.ranks},
               {"stages", segment.stages},
               {"replicas", segment.replicas},
               {"schedule", segment.schedule},
               {"ended", segment.measured ? "done" : "unknown"}};
  if (!segment.timeline.empty()) json["timeline"] = segment.timeline;
  if (segment.predicted_step_ms) {
    json["predicted_step_ms"] = *segment.predicted_step_ms;
    json["predicted_peak_bytes"] = segment.predicted_peak_bytes;
  }
  if (!segment.measured) return json;
  json["median_step_ms"] = segment.measured->median_step_ms;
  json["data_wait_fraction"] = segment.measured->data_wait_fraction;
  json["peak_bytes"] = segment.measured->peak_bytes;
  json["resident_peak_bytes"] = segment.measured->resident_peak_bytes;
  return json;
}

std::map<std::string, std::string> texts_from_json(const JsonField& field) {
  JsonObject object(field);
  std::map<std::string, std::string> result;
  for (const auto& [name, value] : field.json().items())
    result[name] = object.required(name).text();
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

std::optional<Segment::Measured> measured_from_json(JsonObject& object) {
  const auto median = object.optional("median_step_ms");
  if (!median) return std::nullopt;
  const auto read_bytes = [](const JsonField& bytes) { return bytes.integer(0); };
  return Segment::Measured{
      .median_step_ms = median->real(),
      .data_wait_fraction = object.required("data_wait_fraction").real(),
      .peak_bytes = object.required("peak_bytes").list(read_bytes),
      .resident_peak_bytes = object.required("resident_peak_bytes").list(read_bytes)};
}

Segment segment_from_json(const JsonField& field) {
  JsonObject object(field);
  Segment segment;
  segment.first_step = object.required("first_step").integer(0);
  segment.end_step = object.required("end_step").integer(0);
  segment.plan = object.required("plan").text();
  if (const auto timeline = object.optional("timeline")) segment.timeline = timeline->text();
  segment.ranks = object.required("ranks").index(1);
  segment.stages = object.required("stages").index(1);
  segment.replicas = object.required("replicas").index(1);
  segment.schedule = object.required("schedule").text();
  object.required("ended").text();
  if (const auto step = object.optional("predicted_step_ms")) {
    segment.predicted_step_ms = step->real();
    segment.predicted_peak_bytes = object.required("predicted_peak_bytes").list(bytes_from_json);
  }
  segment.measured = measured_from_json(object);
  object.finish();
  return segment;
}

}  // namespace

void save(const RunRecord& record, const std::filesystem::path& path) {
  Json segments = Json::array();
  for (const Segment& segment : record.segments) segments.push_back(to_json(segment));
  write_document(path, kRunDocument,
                 {{"model", record.model},
                  {"facts", record.facts},
                  {"batch",
                   {{"global_batch", record.batch.global_batch},
                    {"microbatch", record.batch.microbatch},
                    {"lanes", record.batch.lanes}}},
                  {"segments", segments}});
}

RunRecord load_run(const std::filesystem::path& path) {
  const Json body = read_document(path, kRunDocument);
  JsonObject object(JsonField(body, "'" + path.string() + "'"));
  RunRecord record;
  record.model = object.required("model").text();
  record.facts = texts_from_json(object.required("facts"));
  JsonObject batch(object.required("batch"));
  record.batch.global_batch = batch.required("global_batch").integer(1);
  record.batch.microbatch = batch.required("microbatch").integer(1);
  record.batch.lanes = batch.required("lanes").integer(1);
  batch.finish();
  record.segments = object.required("segments").list(segment_from_json);
  object.finish();
  return record;
}

Segment segment_of(const layout::Plan& plan) {
  const layout::Mesh& mesh = layout::train_role(plan).mesh;
  Segment segment{.ranks = mesh.num_ranks(),
                  .stages = mesh.pipeline,
                  .replicas = mesh.data,
                  .schedule = plan.schedule.name};
  if (plan.prediction) {
    segment.predicted_step_ms = plan.prediction->step_ms;
    segment.predicted_peak_bytes = plan.prediction->peak_bytes;
  }
  return segment;
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) ::close(lock_);
}

void RunFolder::lock() {
  std::error_code problem;
  std::filesystem::create_directories(root_, problem);
  if (problem) fail("make the folder", root_, problem.message());
  const std::filesystem::path file = path("lock");
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) fail("open", file, std::strerror(errno));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail("lock", file, std::strerror(errno));
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error(ErrorKind::kUnavailable, "another process trains in '" + root_.string() +
                                               "'; end it, or name another folder");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::string RunFolder::name_for(const std::string& what, int ranks) {
  return what + "-" + std::to_string(ranks) + ".json";
}

void rewind_metrics(const std::filesystem::path& path, std::int64_t step) {
  if (!std::filesystem::exists(path)) return;
  std::istringstream lines(read_file(path));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded() || !json.contains("step") || !json["step"].is_number_integer())
      continue;
    // An evaluation after step n - 1 is noted at n: it was made with the weights of then.
    const bool is_evaluation = json.contains("evaluation");
    if (json["step"].get<std::int64_t>() < step + (is_evaluation ? 1 : 0)) kept += line + "\n";
  }
  write_file_atomically(path, kept);
}

}  // namespace trireme::command
