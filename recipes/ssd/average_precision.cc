#include "recipes/ssd/average_precision.h"

#include <ATen/core/grad_mode.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "packs/vision/coco/detections.h"
#include "packs/vision/coco/evaluate.h"
#include "packs/vision/coco/ground_truth.h"
#include "packs/vision/coco/summary.h"
#include "packs/vision/models/ssd_detections.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"

namespace trireme::recipes::ssd {
namespace {

constexpr std::int64_t kBatch = 8;
constexpr std::size_t kShownObjects = 5;
constexpr std::size_t kColumns = 7;  // image id, x, y, width, height, score, category id

using Found = std::vector<std::vector<vision::Detection>>;

std::string text_of(const char* form, auto... values) {
  char buffer[128];
  std::snprintf(buffer, sizeof buffer, form, values...);
  return buffer;
}

/// Samples [begin, end) as one tensor.
torch::Tensor images_of(const vision::BoxedImageSource& source, std::int64_t begin,
                        std::int64_t end) {
  const auto& fields = source.fields();
  auto shape = fields[0].shape;
  shape.insert(shape.begin(), end - begin);
  const auto images = torch::empty(shape);
  const auto bytes_of = [&](std::size_t f) {
    return static_cast<std::size_t>(fields[f].num_bytes());
  };
  std::vector<std::byte> boxes(bytes_of(1)), labels(bytes_of(2));
  for (std::int64_t i = begin; i < end; ++i) {
    auto* image = static_cast<std::byte*>(images[i - begin].mutable_data_ptr());
    const std::span<std::byte> places[] = {{image, bytes_of(0)}, boxes, labels};
    source.read({.index = i}, places);
  }
  return images;
}

Found find_all(vision::Ssd& net, const vision::BoxedImageSource& source) {
  const at::NoGradGuard guard;
  const bool was_training = net->is_training();
  net->eval();
  Found found;
  for (std::int64_t i = 0; i < source.num_samples(); i += kBatch) {
    const auto images = images_of(source, i, std::min(i + kBatch, source.num_samples()));
    for (auto& one : vision::ssd_detections(net(images), net->default_boxes())) {
      found.push_back(std::move(one));
    }
  }
  net->train(was_training);
  return found;
}

/// In pixels of the images, as vision::make_detections takes them.
std::vector<double> rows_of(const Found& found, const vision::BoxedImages& images) {
  std::vector<double> rows;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const vision::BoxedImage& image = images.images[i];
    const auto width = static_cast<double>(image.size.width);
    const auto height = static_cast<double>(image.size.height);
    for (const auto& [box, score] : found[i]) {
      const std::int64_t category = images.category_ids[static_cast<std::size_t>(box.label - 1)];
      rows.insert(rows.end(), {static_cast<double>(image.id), box.x1 * width, box.y1 * height,
                               (box.x2 - box.x1) * width, (box.y2 - box.y1) * height, score,
                               static_cast<double>(category)});
    }
  }
  return rows;
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

std::string show_first(const Found& found, const vision::BoxedImages& images) {
  std::string text = images.images[0].name + " has " +
                     std::to_string(images.images[0].boxes.size()) +
                     " boxes; found: " + std::to_string(found[0].size()) + "\n";
  const auto width = static_cast<double>(images.images[0].size.width);
  const auto height = static_cast<double>(images.images[0].size.height);
  for (std::size_t i = 0; i < std::min(kShownObjects, found[0].size()); ++i) {
    const auto& [box, score] = found[0][i];
    text += text_of("  %.2f  x %.0f to %.0f, y %.0f to %.0f  ", score, box.x1 * width,
                    box.x2 * width, box.y1 * height, box.y2 * height) +
            images.category_names[static_cast<std::size_t>(box.label - 1)] + "\n";
  }
  return text;
}

}  // namespace

std::string average_precision(vision::Ssd& net, const vision::BoxedImageSource& source,
                              const std::filesystem::path& results) {
  const vision::BoxedImages& images = source.images();
  const auto truth = vision::read_ground_truth(images.annotations, vision::CocoKind::kBox);
  const Found found = find_all(net, source);
  const std::vector<double> rows = rows_of(found, images);
  if (!results.empty()) write_results(rows, results);
  const auto curves = vision::evaluate_coco(truth, vision::make_detections(rows, truth));
  const vision::CocoSummary summary = vision::summarize(curves);
  std::string text = vision::to_table(summary, curves);
  for (std::size_t k = 0; k < summary.category_ap.size(); ++k) {
    if (summary.category_ap[k] < 0) continue;  // no such object
    text += text_of("AP %.3f  ", summary.category_ap[k]) + curves.category_names[k] + "\n";
  }
  return text + show_first(found, images);
}

}  // namespace trireme::recipes::ssd
