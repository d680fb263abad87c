#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "packs/vision/coco/evaluate.h"
#include "trireme/base/json.h"

namespace trireme::vision {

/// The twelve figures of COCO, each the mean over categories (and thresholds of overlap, and
/// recalls) of what is not -1; -1 where nothing is. Bit for bit those of pycocotools' `summarize`,
/// but for AP where the largest limit is not 100: there pycocotools says -1.
struct CocoSummary {
  /// AP, AP at 0.50, at 0.75, of small, medium and large; AR at each limit, of small, medium and
  /// large at the largest.
  std::array<double, 12> stats = {};
  std::vector<double> category_ap;  ///< AP of each category.
};

CocoSummary summarize(const CocoCurves& curves);

/// The twelve lines that pycocotools prints.
std::string to_table(const CocoSummary& summary, const CocoCurves& curves);

/// {"stats": {"AP", "AP50", ..., "ARl"}, "categories": [{"id", "name", "AP"}]}
Json to_json(const CocoSummary& summary, const CocoCurves& curves);

/// What is said about a pair of files.
struct CocoReport {
  std::string table;
  Json json;
};

/// Reads, evaluates and summarizes. Errors of those three.
CocoReport evaluate_coco_files(const std::filesystem::path& annotations,
                               const std::filesystem::path& results, const CocoOptions& options);

/// numpy.mean of one value or more: sums of halves, down to blocks of at most 128 in 8 sums.
double mean(std::span<const double> values);

}  // namespace trireme::vision
