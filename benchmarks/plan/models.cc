// What `./dev bench plan` starts: every verb over T5, BERT and the test models, with enough samples for
// batches of thousands and nothing to evaluate, which would take longer than the steps that are measured.

#include "tests/models/models.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "recipes/bert/recipe.h"
#include "recipes/t5/recipe.h"
#include "trireme/command_line.h"
#include "trireme/model.h"

namespace trireme::benchmarks {
namespace {

constexpr std::int64_t kSamples = 4096;
constexpr std::uint64_t kSeed = 5;

Workload make_test_model(const std::string& name) {
  models::TestModel test = models::make(name);
  const Batch samples = test.make_batch(kSamples, kSeed);
  std::vector<std::pair<std::string, at::Tensor>> fields;
  for (const auto& [field, tensor] : samples.tensors()) fields.emplace_back(field, tensor);
  return {test.model, tensor_source(fields), nullptr};
}

Recipe without_evaluation(Recipe recipe) {
  recipe.make = [make = std::move(recipe.make)] {
    Workload workload = make();
    workload.evaluation = nullptr;
    workload.examples = nullptr;
    return workload;
  };
  return recipe;
}

std::map<std::string, Recipe> recipes() {
  std::map<std::string, Recipe> all = {
      {"bert", without_evaluation(trireme::recipes::bert::make_recipe())},
      {"t5", without_evaluation(trireme::recipes::t5::make_recipe())},
  };
  for (const std::string& name : models::names()) {
    all[name].make = [name] { return make_test_model(name); };
  }
  return all;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  return trireme::run_command_line(argc, argv, trireme::benchmarks::recipes());
}
