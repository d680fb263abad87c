#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "packs/text/data/prepare.h"
#include "packs/text/data/python_library.h"

namespace trireme::recipes {

/// `--RECIPE-text`, `-suffix`, `-cache`, `-held-out`.
inline void add_text_options(CLI::App& app, const std::string& recipe,
                             text::PrepareOptions& options) {
  const std::string prefix = "--" + recipe;
  app.add_option(prefix + "-text", options.inputs,
                 "Files and folders of text; else the Python library of this machine");
  app.add_option(prefix + "-suffix", options.suffixes,
                 "Ends of names of the files in folders, `.py`; else all")
      ->delimiter(',');
  app.add_option(prefix + "-cache", options.cache, "Folder for tokens and what is made for them")
      ->capture_default_str();
  app.add_option(prefix + "-held-out", options.held_out_fraction,
                 "Part of the documents for evaluation")
      ->capture_default_str();
}

/// Where no text is named, that of this machine's Python library.
///
/// Returns  whether it was taken. Errors   of text::python_library.
inline bool take_python_library(const std::string& recipe, text::PrepareOptions& options) {
  if (!options.inputs.empty()) return false;
  options.inputs = {text::python_library("--" + recipe + "-text")};
  if (options.suffixes.empty()) options.suffixes = {".py"};
  return true;
}

}  // namespace trireme::recipes
