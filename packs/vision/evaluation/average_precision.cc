#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>

#include "packs/vision/coco/detections.h"
#include "packs/vision/coco/evaluate.h"
#include "packs/vision/coco/ground_truth.h"
#include "packs/vision/coco/summary.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/engine/metrics/outputs.h"
#include "trireme/error.h"
#include "trireme/metrics.h"

namespace trireme::metrics {
namespace {

constexpr std::size_t kColumns = 7;  // image id, x, y, width, height, score, category id

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::kInvalidArgument, "metrics: average_precision: " + what);
}

struct TrueBox {
  std::int64_t category = 0;
  std::int64_t image = 0;
  vision::Box box;
};

/// Ground truth of these images, without annotations.
///
/// image_ids   ascending.
vision::CocoGroundTruth empty_truth(const std::vector<std::int64_t>& image_ids) {
  vision::CocoGroundTruth truth;
  truth.image_ids = image_ids;
  truth.image_sizes.resize(image_ids.size());
  truth.category_begin = {0};
  return truth;
}

/// What is there on images 0 to num_images - 1.
vision::CocoGroundTruth truth_of(std::vector<TrueBox> boxes, std::int64_t num_images) {
  std::vector<std::int64_t> image_ids(static_cast<std::size_t>(num_images));
  std::iota(image_ids.begin(), image_ids.end(), 0);
  vision::CocoGroundTruth truth = empty_truth(image_ids);
  std::ranges::stable_sort(
      boxes, {}, [](const TrueBox& each) { return std::tuple(each.category, each.image); });
  for (const auto& [category, image, box] : boxes) {
    if (truth.category_ids.empty() || truth.category_ids.back() != category) {
      truth.category_ids.push_back(category);
      truth.category_names.push_back(std::to_string(category));
      truth.category_begin.push_back(truth.category_begin.back());
    }
    ++truth.category_begin.back();
    truth.images.push_back(static_cast<std::int32_t>(image));
    truth.ids.push_back(std::ssize(truth.ids) + 1);
    truth.boxes.push_back(box);
    truth.areas.push_back(box.width * box.height);
    truth.is_crowd.push_back(0);
  }
  return truth;
}

/// Of all images those that came.
vision::CocoGroundTruth chosen(const vision::CocoGroundTruth& all,
                               std::vector<std::int64_t> image_ids) {
  std::ranges::sort(image_ids);
  const auto twice = std::ranges::adjacent_find(image_ids);
  if (twice != image_ids.end()) refuse(fmt::format("image {} came twice; give each once", *twice));
  for (const std::int64_t id : image_ids) {
    if (all.image_index(id) < 0) refuse(fmt::format("the truth has no image {}", id));
  }
  vision::CocoGroundTruth truth = empty_truth(image_ids);
  truth.category_ids = all.category_ids;
  truth.category_names = all.category_names;
  for (std::size_t k = 0; k < all.category_ids.size(); ++k) {
    for (auto i = static_cast<std::size_t>(all.category_begin[k]);
         i < static_cast<std::size_t>(all.category_begin[k + 1]); ++i) {
      const std::int32_t image =
          truth.image_index(all.image_ids[static_cast<std::size_t>(all.images[i])]);
      if (image < 0) continue;
      truth.images.push_back(image);
      truth.ids.push_back(all.ids[i]);
      truth.boxes.push_back(all.boxes[i]);
      truth.areas.push_back(all.areas[i]);
      truth.is_crowd.push_back(all.is_crowd[i]);
    }
    truth.category_begin.push_back(std::ssize(truth.ids));
  }
  return truth;
}

/// Rows of categories that the truth has, which alone count.
std::vector<double> known_rows(const std::vector<double>& rows,
                               const vision::CocoGroundTruth& truth) {
  std::vector<double> known;
  for (std::size_t i = 0; i < rows.size(); i += kColumns) {
    if (truth.category_index(static_cast<std::int64_t>(rows[i + 6])) < 0) continue;
    const auto row = std::span(rows).subspan(i, kColumns);
    known.insert(known.end(), row.begin(), row.end());
  }
  return known;
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

class AveragePrecision : public Metric {
 public:
  explicit AveragePrecision(AveragePrecisionOptions options) : options_(std::move(options)) {
    if (!options_.truth.empty()) {
      truth_ = vision::read_ground_truth(options_.truth, vision::CocoKind::kBox);
    }
  }

  void add(const Batch& outputs) override {
    const Objects found = objects_of(outputs, options_.boxes, options_.labels);
    const at::Tensor& given = output_of(outputs, options_.scores);
    if (given.sizes() != found.labels.sizes()) {
      refuse_shapes(outputs, options_.scores, options_.labels,
                    "give [samples, objects], both alike");
    }
    const std::size_t num_before = image_ids_.size();
    add_images(outputs, found.labels.size(0));
    const at::Tensor scores = given.to(at::kDouble).contiguous();
    const auto* score = scores.const_data_ptr<double>();
    found.each([&](std::int64_t i, const vision::Box& box, std::int64_t category) {
      const auto image = image_ids_[num_before + static_cast<std::size_t>(i / found.per_image())];
      rows_.insert(rows_.end(), {static_cast<double>(image), box.x, box.y, box.width, box.height,
                                 score[i], static_cast<double>(category)});
    });
    if (options_.truth.empty()) add_truth(outputs, static_cast<std::int64_t>(num_before));
  }

  std::vector<std::pair<std::string, double>> results() override {
    const vision::CocoGroundTruth truth = options_.truth.empty()
                                              ? truth_of(true_boxes_, std::ssize(image_ids_))
                                              : chosen(truth_, image_ids_);
    const auto detections = vision::make_detections(known_rows(rows_, truth), truth);
    if (!options_.found.empty()) write_results(rows_, options_.found);
    const auto curves = vision::evaluate_coco(truth, detections);
    const Json report = vision::to_json(vision::summarize(curves), curves);
    std::vector<std::pair<std::string, double>> figures;
    for (const auto& [name, value] : report.at("stats").items()) {
      figures.emplace_back(options_.prefix + name, value.get<double>());
    }
    return figures;
  }

 private:
  /// Boxes with labels.
  struct Objects {
    at::Tensor corners;  ///< f64 [samples, objects, 4]
    at::Tensor labels;   ///< i64 [samples, objects]

    std::int64_t per_image() const { return labels.size(1); }

    /// visit(i, box, label) of each that is one, by its place among all of the samples.
    template <typename Visit>
    void each(const Visit& visit) const {
      const auto* at = corners.const_data_ptr<double>();
      const auto* label = labels.const_data_ptr<std::int64_t>();
      for (std::int64_t i = 0; i < labels.numel(); ++i, at += 4) {
        if (label[i] < 0) continue;
        visit(i, vision::Box{at[0], at[1], at[2] - at[0], at[3] - at[1]}, label[i]);
      }
    }
  };

  static Objects objects_of(const Batch& outputs, const std::string& boxes,
                            const std::string& labels) {
    const at::Tensor named = labels_of(outputs, labels);
    const at::Tensor& corners = output_of(outputs, boxes);
    const bool fits = named.dim() == 2 && corners.dim() == 3 && corners.size(2) == 4 &&
                      corners.sizes().slice(0, 2) == named.sizes();
    if (!fits) {
      refuse_shapes(outputs, boxes, labels,
                    "give boxes [samples, objects, 4] and labels [samples, objects]");
    }
    return {corners.to(at::kDouble).contiguous(), named.contiguous()};
  }

  void add_images(const Batch& outputs, std::int64_t count) {
    if (options_.truth.empty()) {
      for (std::int64_t i = 0; i < count; ++i) image_ids_.push_back(std::ssize(image_ids_));
      return;
    }
    const at::Tensor ids = labels_of(outputs, options_.images).flatten().contiguous();
    if (ids.numel() != count) {
      refuse_shapes(outputs, options_.images, options_.labels, "give one image id for each sample");
    }
    const auto* id = ids.const_data_ptr<std::int64_t>();
    image_ids_.insert(image_ids_.end(), id, id + count);
  }

  void add_truth(const Batch& outputs, std::int64_t first_image) {
    const Objects there = objects_of(outputs, options_.true_boxes, options_.true_labels);
    if (there.labels.size(0) != std::ssize(image_ids_) - first_image) {
      refuse_shapes(outputs, options_.true_labels, options_.labels, "give as many samples of both");
    }
    there.each([&](std::int64_t i, const vision::Box& box, std::int64_t category) {
      const std::int64_t image = first_image + i / there.per_image();
      if (!(box.width > 0 && box.height > 0)) {
        refuse(
            fmt::format("sample {} has a true box of label {} without an area, {:g} x {:g}; where "
                        "there is no object "
                        "the label is -1",
                        image, category, box.width, box.height));
      }
      true_boxes_.push_back({category, image, box});
    });
  }

  AveragePrecisionOptions options_;
  vision::CocoGroundTruth truth_;  ///< Of the file.
  std::vector<TrueBox> true_boxes_;
  std::vector<std::int64_t> image_ids_;
  std::vector<double> rows_;  ///< As vision::make_detections takes them.
};

}  // namespace

std::unique_ptr<Metric> average_precision(AveragePrecisionOptions options) {
  return std::make_unique<AveragePrecision>(std::move(options));
}

}  // namespace trireme::metrics
