#include <ATen/Functions.h>
#include <fmt/format.h>

#include <optional>
#include <span>

#include "packs/vision/coco/detections.h"
#include "packs/vision/coco/evaluate.h"
#include "packs/vision/coco/ground_truth.h"
#include "packs/vision/coco/summary.h"
#include "packs/vision/evaluation/coco_truth.h"
#include "packs/vision/evaluation/object_masks.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/engine/metrics/outputs.h"
#include "trireme/metrics.h"

namespace trireme::metrics {
namespace {

constexpr std::size_t kColumns = 7;  // image id, x, y, width, height, score, category id

/// What is found, in the order in which it came.
struct FoundObjects {
  std::vector<double> rows;        ///< As vision::make_detections takes them.
  std::vector<vision::Rle> masks;  ///< Of each row, or none.

  std::size_t size() const { return rows.size() / kColumns; }
  std::span<const double> row(std::size_t i) const {
    return std::span(rows).subspan(i * kColumns, kColumns);
  }
};

/// What is of categories that the truth has, which alone count.
FoundObjects known(const FoundObjects& found, const vision::CocoGroundTruth& truth) {
  FoundObjects result;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto row = found.row(i);
    if (truth.category_index(static_cast<std::int64_t>(row[6])) < 0) continue;
    result.rows.insert(result.rows.end(), row.begin(), row.end());
    if (!found.masks.empty()) result.masks.push_back(found.masks[i]);
  }
  return result;
}

Json result_of(std::span<const double> row) {
  return {{"image_id", static_cast<std::int64_t>(row[0])},
          {"category_id", static_cast<std::int64_t>(row[6])},
          {"score", row[5]}};
}

void write_boxes(const FoundObjects& found, const std::filesystem::path& path) {
  Json list = Json::array();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto row = found.row(i);
    list.push_back(result_of(row));
    list.back()["bbox"] = {row[1], row[2], row[3], row[4]};
  }
  write_file_atomically(path, compact_text(list));
}

/// Without boxes: the masks' own areas count then, whoever evaluates the file.
void write_masks(const FoundObjects& found, const std::filesystem::path& path) {
  Json list = Json::array();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const vision::Rle& mask = found.masks[i];
    list.push_back(result_of(found.row(i)));
    list.back()["segmentation"] = {{"size", {mask.size.height, mask.size.width}},
                                   {"counts", vision::to_text(mask)}};
  }
  write_file_atomically(path, compact_text(list));
}

vision::CocoCurves curves_of_boxes(const FoundObjects& found,
                                   const vision::CocoGroundTruth& truth) {
  return vision::evaluate_coco(truth, vision::make_detections(found.rows, truth));
}

vision::CocoCurves curves_of_masks(const FoundObjects& found,
                                   const vision::CocoGroundTruth& truth) {
  auto detections = vision::make_detections(found.rows, found.masks, truth);
  for (std::int64_t i = 0; i < detections.size(); ++i) {
    detections.areas[static_cast<std::size_t>(i)] = detections.masks.area(i);
  }
  return vision::evaluate_coco(truth, detections, {.kind = vision::CocoKind::kMask});
}

class AveragePrecision : public Metric {
 public:
  explicit AveragePrecision(AveragePrecisionOptions options) : options_(std::move(options)) {
    if (!options_.truth.empty()) {
      truth_ = vision::read_ground_truth(
          options_.truth, has_masks() ? vision::CocoKind::kMask : vision::CocoKind::kBox);
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
    if (options_.truth.empty()) add_truth(outputs, static_cast<std::int64_t>(num_before));
    const auto masks = masks_of(outputs, options_.masks, options_.labels);
    const at::Tensor scores = given.to(at::kDouble).contiguous();
    const auto* score = scores.const_data_ptr<double>();
    found.each([&](std::int64_t i, const vision::Box& box, std::int64_t category) {
      const auto image = image_ids_[num_before + static_cast<std::size_t>(i / found.per_image())];
      found_.rows.insert(found_.rows.end(), {static_cast<double>(image), box.x, box.y, box.width,
                                             box.height, score[i], static_cast<double>(category)});
      if (masks) found_.masks.push_back(masks->mask_of(i, box, size_of(image)));
    });
  }

  std::vector<std::pair<std::string, double>> results() override {
    const vision::CocoGroundTruth truth =
        options_.truth.empty() ? truth_of(true_objects_, std::ssize(image_ids_), true_size_)
                               : chosen(truth_, image_ids_);
    if (!options_.found.empty()) write_boxes(found_, options_.found);
    if (has_masks() && !options_.found_masks.empty()) write_masks(found_, options_.found_masks);
    const FoundObjects counted = known(found_, truth);
    std::vector<std::pair<std::string, double>> figures;
    add_figures(curves_of_boxes(counted, truth), "", figures);
    if (has_masks()) add_figures(curves_of_masks(counted, truth), "mask ", figures);
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

  bool has_masks() const { return !options_.masks.empty(); }

  /// Nothing where masks are not compared.
  std::optional<ObjectMasks> masks_of(const Batch& outputs, const std::string& masks,
                                      const std::string& labels) const {
    if (!has_masks()) return std::nullopt;
    return ObjectMasks(outputs, masks, labels);
  }

  vision::ImageSize size_of(std::int64_t image_id) const {
    if (options_.truth.empty()) return true_size_;
    const std::int32_t at = truth_.image_index(image_id);
    if (at < 0) refuse_precision(fmt::format("the truth has no image {}", image_id));
    return truth_.image_sizes[static_cast<std::size_t>(at)];
  }

  void add_figures(const vision::CocoCurves& curves, const std::string& kind,
                   std::vector<std::pair<std::string, double>>& figures) const {
    const Json report = vision::to_json(vision::summarize(curves), curves);
    for (const auto& [name, value] : report.at("stats").items()) {
      figures.emplace_back(options_.prefix + kind + name, value.get<double>());
    }
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
    const auto masks = masks_of(outputs, options_.true_masks, options_.true_labels);
    if (masks) set_true_size(masks->common_size());
    there.each([&](std::int64_t i, const vision::Box& box, std::int64_t category) {
      TrueObject object{category, first_image + i / there.per_image(), box, std::nullopt};
      if (masks) object.mask = masks->mask_of(i, box, true_size_);
      require_area(object);
      true_objects_.push_back(std::move(object));
    });
  }

  /// That all samples have.
  void set_true_size(vision::ImageSize size) {
    const bool is_first = true_size_ == vision::ImageSize{};
    if (size.num_pixels() == 0 || (!is_first && size != true_size_)) {
      refuse_precision(
          fmt::format("output '{}' has masks of {} pixels{}; give bool [samples, objects, height, "
                      "width], of one "
                      "size in all parts, or a file of the truth",
                      options_.true_masks, vision::to_text(size),
                      is_first ? "" : ", after " + vision::to_text(true_size_)));
    }
    true_size_ = size;
  }

  static void require_area(const TrueObject& object) {
    const auto& [category, image, box, mask] = object;
    const bool has_box = box.width > 0 && box.height > 0;
    if (has_box && (!mask || !mask->bounds.empty())) return;
    refuse_precision(fmt::format(
        "sample {} has a true {} of label {} without an area{}; where there is no object the label "
        "is -1",
        image, has_box ? "mask" : "box", category,
        has_box ? "" : fmt::format(", {:g} x {:g}", box.width, box.height)));
  }

  AveragePrecisionOptions options_;
  vision::CocoGroundTruth truth_;  ///< Of the file.
  vision::ImageSize
      true_size_;  ///< Of all images, where outputs say what is there and there are masks.
  std::vector<TrueObject> true_objects_;
  std::vector<std::int64_t> image_ids_;
  FoundObjects found_;
};

}  // namespace

std::unique_ptr<Metric> average_precision(AveragePrecisionOptions options) {
  return std::make_unique<AveragePrecision>(std::move(options));
}

}  // namespace trireme::metrics
