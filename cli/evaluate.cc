// The program `trireme-evaluate`, which `trireme evaluate` starts: scores what a model made, as
// reference implementations do.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "packs/vision/coco/summary.h"
#include "trireme/arguments/program.h"
#include "trireme/base/files.h"

namespace {

struct CocoOptions {
  std::string annotations;
  std::string results;
  std::string kind = "box";
  std::string json_file;
};

void add_coco(CLI::App& coco, CocoOptions& options) {
  coco.add_option("--annotations", options.annotations, "COCO's JSON file of the ground truth")
      ->required();
  coco.add_option("--results", options.results, "COCO's JSON file of the detections")->required();
  coco.add_option("--kind", options.kind, "What is compared")
      ->check(CLI::IsMember({"box", "mask"}))
      ->capture_default_str();
  coco.add_option("--json", options.json_file, "Also write the figures to this file");
  coco.footer("Example: trireme evaluate coco --annotations instances_val.json --results r.json");
}

int evaluate_coco(const CocoOptions& options) {
  using namespace trireme;
  const auto kind = options.kind == "mask" ? vision::CocoKind::kMask : vision::CocoKind::kBox;
  const int num_threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const vision::CocoReport report =
      vision::evaluate_coco_files(options.annotations, options.results,
                                  {.kind = kind, .spread = kernels::on_threads(num_threads)});
  if (!options.json_file.empty()) {
    write_file_atomically(options.json_file, readable_text(report.json));
  }
  std::fputs(report.table.c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace trireme;
  CLI::App app("Scores what a model made, as reference implementations do.", "trireme evaluate");
  arguments::set_up(app);
  app.require_subcommand(1);
  CocoOptions coco;
  add_coco(*app.add_subcommand("coco", "Detections as COCO scores them: AP and AR"), coco);
  return arguments::run_program(app, {argv, static_cast<std::size_t>(argc)},
                                [&] { return evaluate_coco(coco); });
}
