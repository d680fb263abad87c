#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "trireme/command_line.h"

namespace trireme::recipes {

/// A recipe with options of its own and data that is prepared once for all workloads: `Data::make(options)` makes one.
///
/// add_options   each adds some of the options.
template <typename Options, typename Data>
Recipe recipe_of(std::initializer_list<std::function<void(CLI::App&, Options&)>> add_options,
                 decltype(Recipe::documents) documents = {}) {
  const auto options = std::make_shared<Options>();
  const auto data = std::make_shared<Data>();
  return {.make = [options, data] { return data->make(*options); },
          .add_options =
              [options, all = std::vector(add_options)](CLI::App& app) {
                for (const auto& add : all) add(app, *options);
              },
          .documents = std::move(documents)};
}

}  // namespace trireme::recipes
