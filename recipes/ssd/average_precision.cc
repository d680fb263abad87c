#include "recipes/ssd/average_precision.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <algorithm>
#include <span>

#include "packs/vision/coco/detections.h"
#include "packs/vision/coco/evaluate.h"
#include "packs/vision/coco/ground_truth.h"
#include "packs/vision/coco/summary.h"
#include "packs/vision/models/ssd_detections.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"

namespace trireme::recipes::ssd {
namespace {

constexpr std::size_t kShownObjects = 5;
constexpr std::int64_t kFigures = 6;  // of an object in the output
constexpr std::size_t kColumns = 7;   // image id, x, y, width, height, score, category id

torch::Tensor objects_of(const vision::SsdOutput& output, const torch::Tensor& default_boxes) {
  const vision::SsdDetectionOptions options;
  const auto found = vision::ssd_detections(output, default_boxes, options);
  auto objects = torch::zeros({std::ssize(found), options.most, kFigures}, torch::kDouble);
  auto* at = objects.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < found.size(); ++i) {
    double* row = at + static_cast<std::int64_t>(i) * options.most * kFigures;
    for (const auto& [box, score] : found[i]) {
      for (const double number :
           {box.x1, box.y1, box.x2, box.y2, score, static_cast<double>(box.label)}) {
        *row++ = number;
      }
    }
  }
  return objects;
}

Opaque find_objects(torch::Tensor default_boxes) {
  return opaque("ssd_objects", [boxes = std::move(default_boxes)](const TensorList& inputs) {
    return TensorList{objects_of({.codes_BA4 = inputs[0], .logits_BAK = inputs[1]}, boxes)};
  });
}

void write_results(const std::vector<double>& rows, const std::filesystem::path& path) {
  Json list = Json::array();
  for (std::size_t i = 0; i < rows.size(); i += kColumns) {
    list.push_back({{"image_id", static_cast<std::int64_t>(rows[i])},
                    {"category_id", static_cast<std::int64_t>(rows[i + 6])},
                    {"bbox", {rows[i + 1], rows[i + 2], rows[i + 3], rows[i + 4]}},
                    {"score", rows[i + 5]}});
  }
  write_file_atomically(path, compact_text(list));
}

/// The first sample as a batch, [1, 3, size, size].
torch::Tensor first_image(const vision::BoxedImageSource& source) {
  const auto& fields = source.fields();
  auto shape = fields[0].shape;
  shape.insert(shape.begin(), 1);
  auto image = torch::empty(shape);
  const auto bytes_of = [&](std::size_t f) {
    return static_cast<std::size_t>(fields[f].num_bytes());
  };
  std::vector<std::byte> boxes(bytes_of(1)), labels(bytes_of(2));
  const std::span<std::byte> places[] = {
      {static_cast<std::byte*>(image.mutable_data_ptr()), bytes_of(0)}, boxes, labels};
  source.read({.index = 0}, places);
  return image;
}

}  // namespace

FindObjects::FindObjects(torch::Tensor default_boxes)
    : call_(find_objects(std::move(default_boxes))) {}

torch::Tensor FindObjects::operator()(const vision::SsdOutput& output) const {
  return call_({output.codes_BA4, output.logits_BAK})[0];
}

AveragePrecision::AveragePrecision(std::shared_ptr<const vision::BoxedImageSource> source,
                                   std::filesystem::path results)
    : source_(std::move(source)), results_(std::move(results)) {}

void AveragePrecision::add(const Batch& outputs) {
  const torch::Tensor& objects = outputs["objects"];
  const auto* row = objects.const_data_ptr<double>();
  const vision::BoxedImages& images = source_->images();
  for (std::int64_t i = 0; i < objects.size(0); ++i) {
    const vision::BoxedImage& image = images.images.at(num_images_++);
    const auto width = static_cast<double>(image.size.width);
    const auto height = static_cast<double>(image.size.height);
    for (std::int64_t k = 0; k < objects.size(1); ++k, row += kFigures) {
      const auto label = static_cast<std::size_t>(row[5]);
      if (label == 0) continue;
      rows_.insert(rows_.end(), {static_cast<double>(image.id), row[0] * width, row[1] * height,
                                 (row[2] - row[0]) * width, (row[3] - row[1]) * height, row[4],
                                 static_cast<double>(images.category_ids.at(label - 1))});
    }
  }
}

std::vector<std::pair<std::string, double>> AveragePrecision::results() {
  if (!results_.empty()) write_results(rows_, results_);
  const auto truth =
      vision::read_ground_truth(source_->images().annotations, vision::CocoKind::kBox);
  const auto curves = vision::evaluate_coco(truth, vision::make_detections(rows_, truth));
  const Json report = vision::to_json(vision::summarize(curves), curves);
  std::vector<std::pair<std::string, double>> figures;
  for (const auto& [name, value] : report.at("stats").items()) {
    figures.emplace_back(name, value.get<double>());
  }
  return figures;
}

std::string show_first(vision::Ssd& net, const vision::BoxedImageSource& source) {
  const at::NoGradGuard guard;
  const auto found = vision::ssd_detections(net(first_image(source)), net->default_boxes()).at(0);
  const vision::BoxedImages& images = source.images();
  const vision::BoxedImage& image = images.images[0];
  std::string text =
      fmt::format("{} has {} boxes; found: {}\n", image.name, image.boxes.size(), found.size());
  const auto width = static_cast<double>(image.size.width);
  const auto height = static_cast<double>(image.size.height);
  for (std::size_t i = 0; i < std::min(kShownObjects, found.size()); ++i) {
    const auto& [box, score] = found[i];
    text += fmt::format("  {:.2f}  x {:.0f} to {:.0f}, y {:.0f} to {:.0f}  {}\n", score,
                        box.x1 * width, box.x2 * width, box.y1 * height, box.y2 * height,
                        images.category_names[static_cast<std::size_t>(box.label - 1)]);
  }
  return text;
}

}  // namespace trireme::recipes::ssd
