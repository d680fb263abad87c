#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "packs/text/data/labelled_pairs.h"
#include "trireme/error.h"

namespace trireme::recipes {

/// What the command line says of pairs with labels.
struct ClassifyOptions {
  std::vector<std::filesystem::path> training;
  std::vector<std::filesystem::path> held_out;
  std::vector<std::string> labels;  ///< By class; none: those of the training files, sorted.
  std::vector<std::string> columns = {"premise", "hypothesis", "label"};
  std::vector<std::int64_t> padded;  ///< Lengths beside the longest.
};

/// `--RECIPE-classify`, `-classify-held-out`, `-classify-labels`, `-classify-columns`.
inline void add_classify_options(CLI::App& app, const std::string& recipe,
                                 ClassifyOptions& options) {
  const std::string name = "--" + recipe + "-classify";
  auto* training =
      app.add_option(name, options.training, "Fine-tune on pairs of texts with labels: TSV files");
  app.add_option(name + "-held-out", options.held_out,
                 "Such files for evaluation; of several the accuracy of each is said too")
      ->needs(training);
  app.add_option(name + "-labels", options.labels,
                 "The labels, in their order; else those of the training files, sorted")
      ->delimiter(',')
      ->needs(training);
  app.add_option(name + "-columns", options.columns,
                 "Names of the columns: first text, second text, label")
      ->delimiter(',')
      ->needs(training)
      ->capture_default_str();
  app.add_option(name + "-padded", options.padded,
                 "Lengths that samples are padded to beside the longest, as 32,64: less is "
                 "computed on padding")
      ->delimiter(',')
      ->needs(training);
}

/// kInvalidArgument where there are not three.
inline text::PairColumns columns_of(const ClassifyOptions& options, const std::string& recipe) {
  const auto& columns = options.columns;
  if (columns.size() == 3) return {columns[0], columns[1], columns[2]};
  throw Error(ErrorKind::kInvalidArgument,
              "--" + recipe +
                  "-classify-columns takes three names, of the first text, the second text and the "
                  "label, got " +
                  std::to_string(columns.size()));
}

}  // namespace trireme::recipes
