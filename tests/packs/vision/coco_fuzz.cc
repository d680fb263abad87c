// `b` or `m`, an annotations file, a line `---`, a results file: an evaluation for boxes or masks
// whose figures are all in [0, 1] or -1, or a trireme::Error.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "packs/vision/coco/summary.h"
#include "trireme/error.h"

namespace {

void evaluate(trireme::vision::CocoKind kind, std::string_view annotations,
              std::string_view results) {
  using namespace trireme::vision;
  const CocoGroundTruth truth = parse_ground_truth(annotations, kind, "annotations");
  const CocoDetections detections = parse_detections(results, kind, truth, "results");
  const CocoSummary summary = summarize(evaluate_coco(truth, detections, {.kind = kind}));
  for (const double figure : summary.stats) {
    if (figure != -1 && !(figure >= 0 && figure <= 1)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kRule = "\n---\n";
  const std::size_t rule = text.find(kRule);
  if (rule == std::string_view::npos) return 0;
  const auto kind =
      text[0] == 'm' ? trireme::vision::CocoKind::kMask : trireme::vision::CocoKind::kBox;
  try {
    evaluate(kind, text.substr(1, rule - 1), text.substr(rule + kRule.size()));
  } catch (const trireme::Error&) {
    return 0;  // refused, as it says
  }
  return 0;
}
