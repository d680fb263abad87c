#include <algorithm>
#include <memory>
#include <thread>

#include "trireme/base/files.h"
#include "trireme/command/verbs.h"
#include "trireme/evaluate/coco/summary.h"

namespace trireme::command {
namespace {

struct EvaluateVerbOptions {
  std::string annotations;
  std::string results;
  std::string kind = "box";
  std::string json_file;
};

}  // namespace

Body add_evaluate(CLI::App& app, Context& context) {
  auto options = std::make_shared<EvaluateVerbOptions>();
  CLI::App* coco = app.add_subcommand("coco", "Detections as COCO scores them: AP and AR");
  coco->add_option("--annotations", options->annotations, "COCO's JSON file of the ground truth")
      ->required();
  coco->add_option("--results", options->results, "COCO's JSON file of the detections")->required();
  coco->add_option("--kind", options->kind, "What is compared")
      ->check(CLI::IsMember({"box", "mask"}))
      ->capture_default_str();
  coco->add_option("--json", options->json_file, "Also write the figures to this file");
  coco->footer("Example: trireme evaluate coco --annotations instances_val.json --results r.json");
  app.require_subcommand(1);
  return [options, &context] {
    const auto kind =
        options->kind == "mask" ? evaluate::CocoKind::kMask : evaluate::CocoKind::kBox;
    const int num_threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const evaluate::CocoReport report =
        evaluate::evaluate_coco_files(options->annotations, options->results,
                                      {.kind = kind, .spread = kernels::on_threads(num_threads)});
    if (!options->json_file.empty()) {
      write_file_atomically(options->json_file, readable_text(report.json));
    }
    print(context, report.json, report.table);
    return 0;
  };
}

}  // namespace trireme::command
