#pragma once

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/test_folder.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/command_line.h"
#include "trireme/engine/train/construct_workload.h"

namespace trireme::recipes {

/// A recipe run as by its program.
class RecipeRun : public test::TestFolder {
 protected:
  using Words = std::vector<std::string>;
  using Values = std::vector<std::pair<std::string, std::string>>;

  RecipeRun(std::string name, std::function<Recipe()> make_recipe)
      : name_(std::move(name)), make_recipe_(std::move(make_recipe)) {}

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

  /// The evaluations in the file `metrics`.
  std::vector<Json> evaluations() const {
    std::istringstream lines(read_file(path("metrics")));
    std::vector<Json> found;
    for (std::string line; std::getline(lines, line);) {
      const Json json = Json::parse(line);
      if (json.contains("evaluation")) found.push_back(json["evaluation"]);
    }
    return found;
  }

  /// Tables of pairs whose second text says the label: train.tsv, a.tsv and b.tsv, columns s1, s2, gold.
  void write_pairs() const {
    for (const auto& [name, count] : {std::pair{"train.tsv", 200}, {"a.tsv", 30}, {"b.tsv", 20}}) {
      std::ofstream file(folder / name);
      file << "s1\ts2\tgold\n";
      for (int i = 0; i < count; ++i) {
        const bool is_error = i * 7 % 10 < 5;
        file << "the file\t" << (is_error ? "throws an error" : "is a value") << "\t"
             << (is_error ? "bad" : "good") << "\n";
      }
    }
  }

  /// Trains two steps, then on those pairs from there; all that are held out must be right in the end.
  ///
  /// more   words of the second training.
  void expect_to_learn_pairs(const std::string& num_steps, const Words& more) const {
    write_pairs();
    const Words usual = {"train", "--serial", "--batch", "8", "--microbatch"};
    const auto with = [&usual](Words words) {
      words.insert(words.begin(), usual.begin(), usual.end());
      return words;
    };
    const std::string weights = path("weights.safetensors"), classify = "--" + name_ + "-classify";
    ASSERT_EQ(run(with({"8", "--steps", "2", "--save", weights})), 0);
    Words words =
        with({"4", "--stages", "2", "--steps", num_steps, "--learning-rate", "0.003", "--init-from",
              weights, classify, path("train.tsv"), classify + "-columns", "s1,s2,gold",
              classify + "-held-out", path("a.tsv"), path("b.tsv"), "--metrics", path("metrics")});
    words.insert(words.end(), more.begin(), more.end());
    ASSERT_EQ(run(words), 0);
    ASSERT_FALSE(evaluations().empty());
    const Json last = evaluations().back();
    for (const char* name : {"accuracy", "a_accuracy", "b_accuracy"}) {
      EXPECT_EQ(last["by_name"][name].get<double>(), 1) << last.dump();
    }
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
