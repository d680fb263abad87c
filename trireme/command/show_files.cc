#include "trireme/command/show_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <sstream>
#include <vector>

#include "trireme/base/files.h"
#include "trireme/base/mapped_file.h"
#include "trireme/base/safetensors.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/text_table.h"

namespace trireme::command {
namespace {

constexpr std::size_t kRows = 20;

std::vector<Json> lines_of_metrics(const std::string& file) {
  const std::string text = read_file(file);
  std::istringstream stream(text);
  std::vector<Json> lines;
  for (std::string line; std::getline(stream, line) && !stream.eof();) {
    const Json json = parse_json(line, fmt::format("{}, line {}", file, lines.size() + 1));
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) {
      throw Error(ErrorKind::kCorruptData,
                  fmt::format("'{}', line {}: not an object with a step", file, lines.size() + 1));
    }
    lines.push_back(json);
  }
  return lines;
}

/// A number with these digits after the point, `-` where there is none.
std::string number_text(const Json& line, const char* field, int digits) {
  const auto found = line.is_object() ? line.find(field) : line.end();
  if (found == line.end() || !found->is_number()) return "-";
  return fmt::format("{:.{}f}", found->get<double>(), digits);
}

std::string evaluation_text(const Json& line) {
  return fmt::format("after {} steps, evaluation loss {}\n", line["step"].get<std::int64_t>(),
                     number_text(line["evaluation"], "loss", 6));
}

}  // namespace

Shown show_metrics(const std::string& file) {
  const std::vector<Json> lines = lines_of_metrics(file);
  std::vector<const Json*> steps;
  std::string evaluations;
  for (const Json& line : lines) {
    if (line.contains("evaluation")) {
      evaluations += evaluation_text(line);
    } else {
      steps.push_back(&line);
    }
  }
  graph::Table table({">step", ">loss", ">ms", ">samples/s", ">learning rate"});
  const std::size_t stride = (steps.size() + kRows - 1) / kRows;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i % stride != 0 && i + 1 != steps.size()) continue;
    const Json& line = *steps[i];
    table.add({std::to_string(line["step"].get<std::int64_t>()), number_text(line, "loss", 6),
               number_text(line, "step_ms", 1), number_text(line, "samples_per_s", 0),
               number_text(line, "learning_rate", 6)});
  }
  return {Json(lines), fmt::format("{} steps\n", steps.size()) + table.text() + evaluations};
}

Shown show_tensors(const std::string& file) {
  const MappedFile mapped(file);
  const safetensors::Content content = safetensors::parse(mapped.bytes(), file);
  Json json = {{"metadata", content.metadata}, {"tensors", Json::object()}};
  graph::Table table({"tensor", "type", "shape", ">size"});
  std::int64_t bytes = 0;
  for (const safetensors::Tensor& tensor : content.tensors) {
    const auto size = static_cast<std::int64_t>(tensor.bytes.size());
    const std::string dtype(to_text(tensor.dtype));
    json["tensors"][tensor.name] = {{"dtype", dtype}, {"shape", tensor.shape}, {"bytes", size}};
    table.add({tensor.name, dtype, fmt::format("[{}]", fmt::join(tensor.shape, ", ")),
               graph::bytes_text(size)});
    bytes += size;
  }
  return {json, fmt::format("{} tensors, {}\n", content.tensors.size(), graph::bytes_text(bytes)) +
                    table.text()};
}

}  // namespace trireme::command
