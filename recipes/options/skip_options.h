#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "trireme/arguments/numbers.h"
#include "trireme/data.h"

namespace trireme::recipes {

/// How many damaged images a training passes over, and where it says which.
struct SkipDamagedImages {
  std::int64_t max_skipped = 0;
  std::filesystem::path quarantine;  ///< None: `damaged.jsonl` in the run's folder, or else here.
  const CLI::App* app = nullptr;     ///< That the options are of; outlives this.

  /// The training's images; an evaluation meets each of its images or none.
  std::shared_ptr<const data::Source> around(std::shared_ptr<const data::Source> images) const {
    if (max_skipped == 0) return images;
    return data::skip_damaged(
        std::move(images),
        {.max_skipped = max_skipped, .quarantine = quarantine.empty() ? usual() : quarantine});
  }

 private:
  std::filesystem::path usual() const {
    std::filesystem::path folder;
    for (const CLI::App* verb : app->get_subcommands()) {
      const CLI::Option* run = verb->get_option_no_throw("--run");
      if (run != nullptr && run->count() > 0) folder = run->as<std::string>();
    }
    return folder / "damaged.jsonl";
  }
};

/// `--NAME-skip-damaged` and `--NAME-quarantine`.
inline void add_skip_options(CLI::App& app, const std::string& name, SkipDamagedImages& skip) {
  skip.app = &app;
  auto* budget = app.add_option("--" + name + "-skip-damaged", skip.max_skipped,
                                "Damaged images of training that each process replaces by the next "
                                "whole one; one more ends the run, naming it")
                     ->check(arguments::not_negative())
                     ->capture_default_str();
  app.add_option(
         "--" + name + "-quarantine", skip.quarantine,
         "File that gets a line of JSON for each of them; damaged.jsonl in the run's folder "
         "where it is not given")
      ->needs(budget);
}

}  // namespace trireme::recipes
