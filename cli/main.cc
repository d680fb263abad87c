#include <map>
#include <string>

#include "recipes/bert/recipe.h"
#include "recipes/resnet50/recipe.h"
#include "recipes/ssd/recipe.h"
#include "recipes/t5/recipe.h"
#include "trireme/command_line.h"

/// The executable `trireme`: every verb, with the recipes as its models. A program of one's own
/// gets the same verbs (examples/01_own_model).
int main(int argc, char** argv) {
  const std::map<std::string, trireme::Recipe> recipes = {
      {"bert", trireme::recipes::bert::make_recipe()},
      {"resnet50", trireme::recipes::resnet50::make_recipe()},
      {"ssd", trireme::recipes::ssd::make_recipe()},
      {"t5", trireme::recipes::t5::make_recipe()},
  };
  return trireme::run_command_line(argc, argv, recipes);
}
