#include "recipes/ssd/average_precision.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "packs/vision/models/ssd_detections.h"
#include "trireme/metrics.h"

namespace trireme::recipes::ssd {
namespace {

constexpr std::size_t kShownObjects = 5;
constexpr std::int64_t kFigures = 6;  // of an object in the output

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

/// Objects as metrics::average_precision reads them: in pixels, by category ids, beside the images' own ids.
class ObjectsOfSource : public Metric {
 public:
  ObjectsOfSource(std::shared_ptr<const vision::BoxedImageSource> source,
                  std::filesystem::path results)
      : source_(std::move(source)),
        precision_(metrics::average_precision(
            {.truth = source_->images().annotations, .found = std::move(results)})) {
    const vision::BoxedImages& images = source_->images();
    std::vector<std::int64_t> categories = {-1};
    categories.insert(categories.end(), images.category_ids.begin(), images.category_ids.end());
    categories_ = torch::tensor(categories, torch::kLong);
  }

  void add(const Batch& outputs) override {
    const torch::Tensor& objects_BN6 = outputs["objects"];
    std::vector<double> sides;
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < objects_BN6.size(0); ++i) {
      const vision::BoxedImage& image = source_->images().images.at(num_images_++);
      const auto width = static_cast<double>(image.size.width);
      const auto height = static_cast<double>(image.size.height);
      sides.insert(sides.end(), {width, height, width, height});
      ids.push_back(image.id);
    }
    const auto sides_B14 = torch::tensor(sides, torch::kDouble).view({-1, 1, 4});
    Batch found;
    found.set("boxes", objects_BN6.slice(2, 0, 4) * sides_B14);
    found.set("scores", objects_BN6.select(2, 4));
    found.set("labels", categories_.index({objects_BN6.select(2, 5).to(torch::kLong)}));
    found.set("image_ids", torch::tensor(ids, torch::kLong));
    precision_->add(found);
  }

  std::vector<std::pair<std::string, double>> results() override { return precision_->results(); }

 private:
  std::shared_ptr<const vision::BoxedImageSource> source_;
  std::unique_ptr<Metric> precision_;
  torch::Tensor categories_;    ///< Their ids by label; -1 where an image has no more objects.
  std::size_t num_images_ = 0;  ///< Seen so far.
};

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

std::unique_ptr<Metric> average_precision(std::shared_ptr<const vision::BoxedImageSource> source,
                                          std::filesystem::path results) {
  return std::make_unique<ObjectsOfSource>(std::move(source), std::move(results));
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
