#include "benchmarks/kernels/coco_cases.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <random>

#include "packs/vision/coco/evaluate.h"
#include "packs/vision/coco/paste.h"
#include "packs/vision/coco/polygon.h"
#include "packs/vision/coco/summary.h"
#include "trireme/base/json.h"

namespace trireme::kernels::bench {
namespace {

using vision::Box;

constexpr int kImages = 5000, kAnnotations = 36'579, kCategories = 80;
constexpr vision::ImageSize kSize{480, 640};

struct Object {
  int image = 0;
  int category = 0;
  double score = 0;
  Box box;
};

/// Objects as in photographs: a few classes have most, most are small.
class Scene {
 public:
  Box box() {
    const double width = std::min(600.0, std::exp(4 + normal_(random_)));
    const double height = std::min(440.0, std::exp(4 + normal_(random_)));
    return {(static_cast<double>(kSize.width) - width) * even_(random_),
            (static_cast<double>(kSize.height) - height) * even_(random_), width, height};
  }

  std::vector<Object> annotations() {
    std::vector<Object> objects;
    for (int i = 0; i < kAnnotations; ++i) {
      // Some images have many, some none.
      const auto image = static_cast<int>(std::pow(even_(random_), 1.5) * kImages);
      objects.push_back({.image = image, .category = category(), .box = box()});
    }
    std::ranges::stable_sort(objects, {}, &Object::image);
    return objects;
  }

  /// The same number for each image: some near each annotation, the rest anywhere.
  std::vector<Object> detections(const std::vector<Object>& annotations, int num_for_image) {
    std::vector<Object> found;
    auto next = annotations.begin();
    for (int image = 0; image < kImages; ++image) {
      int left = num_for_image;
      for (; next != annotations.end() && next->image == image; ++next) {
        for (int copy = 0; copy < 3 && left > 0; ++copy, --left) found.push_back(near(*next));
      }
      for (; left > 0; --left) {
        found.push_back({image, category(), std::pow(even_(random_), 3), box()});
      }
    }
    return found;
  }

 private:
  int category() { return static_cast<int>(std::pow(even_(random_), 3) * kCategories); }

  Object near(const Object& object) {
    constexpr double kJitter = 0.1;
    const Box& at = object.box;
    return {object.image, object.category, std::sqrt(even_(random_)),
            Box{at.x + kJitter * at.width * normal_(random_),
                at.y + kJitter * at.height * normal_(random_),
                at.width * std::exp(kJitter * normal_(random_)),
                at.height * std::exp(kJitter * normal_(random_))}};
  }

  std::mt19937_64 random_{1};
  std::uniform_real_distribution<double> even_;
  std::normal_distribution<double> normal_;
};

/// An ellipse in a box, as a polygon of 24 corners.
std::vector<double> polygon_in(const Box& box) {
  std::vector<double> xy;
  for (int i = 0; i < 24; ++i) {
    const double angle = 2 * std::numbers::pi * i / 24;
    xy.push_back(std::round(100 * (box.x + box.width * (1 + std::cos(angle)) / 2)) / 100);
    xy.push_back(std::round(100 * (box.y + box.height * (1 + std::sin(angle)) / 2)) / 100);
  }
  return xy;
}

void write(const std::filesystem::path& file, const Json& json) {
  std::ofstream(file) << compact_text(json);
}

Json to_json(const std::vector<Object>& annotations) {
  Json images = Json::array(), categories = Json::array(), list = Json::array();
  for (int i = 0; i < kImages; ++i) {
    images.push_back({{"id", i}, {"height", kSize.height}, {"width", kSize.width}});
  }
  for (int i = 0; i < kCategories; ++i) {
    categories.push_back({{"id", i + 1}, {"name", std::to_string(i)}});
  }
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    const auto& [image, category, score, box] = annotations[i];
    list.push_back({{"id", i + 1},
                    {"image_id", image},
                    {"category_id", category + 1},
                    {"iscrowd", i % 100 == 0 ? 1 : 0},
                    {"area", box.width * box.height},
                    {"bbox", {box.x, box.y, box.width, box.height}},
                    {"segmentation", {polygon_in(box)}}});
  }
  return {{"images", images}, {"categories", categories}, {"annotations", list}};
}

Json masks_to_json(const std::vector<Object>& detections) {
  Json list = Json::array();
  for (const auto& [image, category, score, box] : detections) {
    const std::string counts = to_text(vision::from_polygon(kSize, polygon_in(box)));
    list.push_back({{"image_id", image},
                    {"category_id", category + 1},
                    {"score", score},
                    {"segmentation", {{"size", {kSize.height, kSize.width}}, {"counts", counts}}}});
  }
  return list;
}

class CocoCase final : public Case {
 public:
  CocoCase(const CaseSetting& setting, vision::CocoKind kind, int num_for_image) {
    options_ = {.kind = kind, .spread = on_threads(setting.num_threads)};
    Scene scene;
    const std::vector<Object> annotations = scene.annotations();
    const std::vector<Object> detections = scene.detections(annotations, num_for_image);
    write(setting.folder / "annotations.json", to_json(annotations));
    truth_ = vision::read_ground_truth(setting.folder / "annotations.json", kind);
    if (kind == vision::CocoKind::kMask) {
      write(setting.folder / "results.json", masks_to_json(detections));
      detections_ = vision::read_detections(setting.folder / "results.json", kind, truth_);
      return;
    }
    auto row = inputs_.add<double>("rows", {std::ssize(detections), 7}).begin();
    for (const auto& [image, category, score, box] : detections) {
      const double numbers[] = {
          static_cast<double>(image),       box.x, box.y, box.width, box.height, score,
          static_cast<double>(category + 1)};
      row = std::ranges::copy(numbers, row).out;
    }
    detections_ = vision::make_detections(inputs_.get<double>("rows"), truth_);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override { summary_ = summarize(evaluate_coco(truth_, detections_, options_)); }

  Tensors outputs() const override {
    Tensors outputs;
    std::ranges::copy(summary_.stats, outputs.add<double>("stats", {12}).begin());
    return outputs;
  }

 private:
  Tensors inputs_;
  vision::CocoOptions options_;
  vision::CocoGroundTruth truth_;
  vision::CocoDetections detections_;
  vision::CocoSummary summary_;
};

/// Detections' soft masks, discs that fade out, as areas of the masks of the whole image.
class PasteCase final : public Case {
 public:
  static constexpr std::int64_t kMasks = 1000, kSide = 28;

  PasteCase() {
    const auto masks = inputs_.add<float>("masks", {kMasks, kSide, kSide});
    const auto boxes = inputs_.add<float>("boxes", {kMasks, 4});
    const auto image = inputs_.add<std::int64_t>("image", {2});
    image[0] = kSize.height;
    image[1] = kSize.width;
    for (std::int64_t i = 0; i < std::ssize(masks); ++i) {
      const auto centred = [](std::int64_t at) { return (static_cast<float>(at) + 0.5F) / 14 - 1; };
      const float x = centred(i % kSide), y = centred(i / kSide % kSide);
      masks[i] = std::exp(-(x * x + y * y) * 1.1F);
    }
    for (std::int64_t i = 0; i < kMasks; ++i) {
      const Box box = scene_.box();
      const double corners[] = {box.x, box.y, box.x + box.width, box.y + box.height};
      std::ranges::transform(corners, boxes.begin() + 4 * i,
                             [](double corner) { return static_cast<float>(corner); });
    }
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const auto masks = inputs_.get<float>("masks"), boxes = inputs_.get<float>("boxes");
    for (std::int64_t i = 0; i < kMasks; ++i) {
      const auto box = boxes.subspan(4 * i, 4);
      pasted_[i] = paste(kSize, {.values = masks.subspan(i * kSide * kSide, kSide * kSide),
                                 .side = kSide,
                                 .left = box[0],
                                 .top = box[1],
                                 .right = box[2],
                                 .bottom = box[3]});
    }
  }

  Tensors outputs() const override {
    Tensors outputs;
    const auto areas = outputs.add<double>("areas", {kMasks});
    std::ranges::transform(pasted_, areas.begin(), [](const vision::Rle& mask) {
      return static_cast<double>(vision::area(mask));
    });
    return outputs;
  }

 private:
  Scene scene_;
  Tensors inputs_;
  std::vector<vision::Rle> pasted_{kMasks};
};

CaseEntry entry(const std::string& name, const std::string& shape, vision::CocoKind kind,
                int num_for_image) {
  return {.name = name,
          .shape = shape,
          .tolerance = 1e-9,
          .peers = {"faster-coco-eval", "pycocotools"},
          .make = [=](const CaseSetting& setting) {
            return std::make_unique<CocoCase>(setting, kind, num_for_image);
          }};
}

}  // namespace

std::vector<CaseEntry> coco_cases() {
  return {entry("coco/boxes", "500,000 detections", vision::CocoKind::kBox, 100),
          entry("coco/masks", "100,000 detections", vision::CocoKind::kMask, 20),
          {.name = "coco/paste",
           .shape = "1,000 masks 28 x 28 into 480 x 640",
           .tolerance = 1e-3,
           .peers = {"torchvision"},
           .make = [](const CaseSetting&) { return std::make_unique<PasteCase>(); }}};
}

}  // namespace trireme::kernels::bench
