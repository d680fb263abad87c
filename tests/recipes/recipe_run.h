#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/recipes/folder_test.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/command_line.h"
#include "trireme/engine/train/construct_workload.h"

namespace trireme::recipes {

/// A recipe run as by its program.
class RecipeRun : public FolderTest {
 protected:
  using Words = std::vector<std::string>;
  using Values = std::vector<std::pair<std::string, std::string>>;

  RecipeRun(std::string name, std::function<Recipe()> make_recipe)
      : FolderTest(name), name_(std::move(name)), make_recipe_(std::move(make_recipe)) {}

  int run(const Words& more) const {
    const Words all = words(more);
    const auto argv = pointers(all);
    return run_command_line(static_cast<int>(argv.size()), argv.data(),
                            std::map<std::string, Recipe>{{name_, make_recipe_()}});
  }

  /// The workload that the options make, under seed 1.
  Workload workload(const Words& more) const {
    const Words all = words(more);
    const auto argv = pointers(all);
    const Recipe recipe = make_recipe_();
    CLI::App app;
    app.add_option("--model");
    recipe.add_options(app);
    app.parse(static_cast<int>(argv.size()), argv.data());
    return train::construct(recipe.make, 1);
  }

  /// Of a parameter that the options make; empty where there is none.
  std::vector<std::int64_t> shape(const Words& more, const std::string& parameter) const {
    for (const NamedTensor& one : workload(more).model.parameters) {
      if (one.name == parameter) return one.tensor.sizes().vec();
    }
    return {};
  }

  /// The losses of the steps in the file `metrics`.
  std::vector<double> losses(const std::function<double(const Json&)>& loss) const {
    std::istringstream lines(read_file(path("metrics")));
    std::vector<double> losses;
    for (std::string line; std::getline(lines, line);) {
      const Json json = Json::parse(line);
      if (!json.contains("evaluation")) losses.push_back(loss(json));
    }
    return losses;
  }

  /// Options and their values: of a small model over a few sources of this repository.
  Values usual_;

 private:
  /// With more options, or other values of the usual ones.
  Words words(const Words& more) const {
    Words all = {"trireme", "--model", name_};
    for (const auto& [name, value] : usual_) {
      if (std::find(more.begin(), more.end(), name) != more.end()) continue;
      all.insert(all.end(), {name, value});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  static std::vector<const char*> pointers(const Words& all) {
    std::vector<const char*> result;
    for (const std::string& word : all) result.push_back(word.c_str());
    return result;
  }

  std::string name_;
  std::function<Recipe()> make_recipe_;
};

}  // namespace trireme::recipes
