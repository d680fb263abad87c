#include "packs/vision/coco/summary.h"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::vision {
namespace {

constexpr int kAllIous = -1;

/// What a figure is the mean of.
struct Figure {
  const char* name;
  bool is_precision;
  int iou;  ///< Position of the threshold, or kAllIous.
  CocoArea area;
  int limit;  ///< Position in max_dets.
};

constexpr std::array<Figure, 12> kFigures = {{
    {"AP", true, kAllIous, CocoArea::kAll, 2},
    {"AP50", true, 0, CocoArea::kAll, 2},
    {"AP75", true, 5, CocoArea::kAll, 2},
    {"APs", true, kAllIous, CocoArea::kSmall, 2},
    {"APm", true, kAllIous, CocoArea::kMedium, 2},
    {"APl", true, kAllIous, CocoArea::kLarge, 2},
    {"AR1", false, kAllIous, CocoArea::kAll, 0},
    {"AR10", false, kAllIous, CocoArea::kAll, 1},
    {"AR100", false, kAllIous, CocoArea::kAll, 2},
    {"ARs", false, kAllIous, CocoArea::kSmall, 2},
    {"ARm", false, kAllIous, CocoArea::kMedium, 2},
    {"ARl", false, kAllIous, CocoArea::kLarge, 2},
}};

constexpr std::array<const char*, CocoCurves::kAreas> kAreaNames = {"all", "small", "medium",
                                                                    "large"};

double sum(std::span<const double> values) {
  constexpr std::size_t kBlock = 128, kSums = 8;
  const std::size_t n = values.size();
  if (n > kBlock) {
    const std::size_t half = n / 2 / kSums * kSums;
    return sum(values.first(half)) + sum(values.subspan(half));
  }
  double total = 0;
  std::size_t i = 0;
  if (n >= kSums) {
    std::array<double, kSums> s{};
    std::ranges::copy(values.first(kSums), s.begin());
    for (i = kSums; i + kSums <= n; i += kSums) {
      for (std::size_t k = 0; k < kSums; ++k) s[k] += values[i + k];
    }
    total = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
  }
  for (; i < n; ++i) total += values[i];
  return total;
}

/// Of the categories [first, last), in the order T, R, K.
double mean_precision(const CocoCurves& curves, const Figure& figure, std::int64_t first,
                      std::int64_t last) {
  std::vector<double> values;
  const bool is_one = figure.iou != kAllIous;
  for (int t = is_one ? figure.iou : 0; t < (is_one ? figure.iou + 1 : CocoCurves::kIous); ++t) {
    for (int r = 0; r < CocoCurves::kRecalls; ++r) {
      for (std::int64_t k = first; k < last; ++k) {
        const double value = curves.precisions(k, figure.area, figure.limit, t)[r];
        if (value > -1) values.push_back(value);
      }
    }
  }
  return values.empty() ? -1 : mean(values);
}

/// In the order T, K.
double mean_recall(const CocoCurves& curves, const Figure& figure) {
  std::vector<double> values;
  for (int t = 0; t < CocoCurves::kIous; ++t) {
    for (std::int64_t k = 0; k < curves.num_categories(); ++k) {
      const double value = curves.recalls(k, figure.area, figure.limit)[t];
      if (value > -1) values.push_back(value);
    }
  }
  return values.empty() ? -1 : mean(values);
}

}  // namespace

double mean(std::span<const double> values) {
  return sum(values) / static_cast<double>(values.size());
}

CocoSummary summarize(const CocoCurves& curves) {
  CocoSummary summary;
  const std::int64_t num_categories = curves.num_categories();
  for (std::size_t i = 0; i < kFigures.size(); ++i) {
    const Figure& figure = kFigures[i];
    summary.stats[i] = figure.is_precision ? mean_precision(curves, figure, 0, num_categories)
                                           : mean_recall(curves, figure);
  }
  for (std::int64_t k = 0; k < num_categories; ++k) {
    summary.category_ap.push_back(mean_precision(curves, kFigures[0], k, k + 1));
  }
  return summary;
}

std::string to_table(const CocoSummary& summary, const CocoCurves& curves) {
  std::string text;
  for (std::size_t i = 0; i < kFigures.size(); ++i) {
    const Figure& figure = kFigures[i];
    const std::string iou =
        figure.iou == kAllIous ? "0.50:0.95" : fmt::format("{:.2f}", 0.5 + 0.05 * figure.iou);
    text += fmt::format(" {:<18} {} @[ IoU={:<9} | area={:>6} | maxDets={:>3} ] = {:.3f}\n",
                        figure.is_precision ? "Average Precision" : "Average Recall",
                        figure.is_precision ? "(AP)" : "(AR)", iou,
                        kAreaNames[static_cast<std::size_t>(figure.area)],
                        curves.max_dets[figure.limit], summary.stats[i]);
  }
  return text;
}

Json to_json(const CocoSummary& summary, const CocoCurves& curves) {
  Json stats = Json::object(), categories = Json::array();
  for (std::size_t i = 0; i < kFigures.size(); ++i) stats[kFigures[i].name] = summary.stats[i];
  for (std::int64_t k = 0; k < curves.num_categories(); ++k) {
    categories.push_back({{"id", curves.category_ids[k]},
                          {"name", curves.category_names[k]},
                          {"AP", summary.category_ap[k]}});
  }
  return {{"stats", stats}, {"categories", categories}};
}

CocoReport evaluate_coco_files(const std::filesystem::path& annotations,
                               const std::filesystem::path& results, const CocoOptions& options) {
  const CocoGroundTruth truth = read_ground_truth(annotations, options.kind);
  const CocoDetections detections = read_detections(results, options.kind, truth);
  const CocoCurves curves = evaluate_coco(truth, detections, options);
  const CocoSummary summary = summarize(curves);
  return {to_table(summary, curves), to_json(summary, curves)};
}

}  // namespace trireme::vision
