#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace trireme::arguments {

/// An option whose values are words, each for a value of an enumeration; the help lists them and says which one is `value`
/// now. Capitals do not count.
template <typename Kind>
CLI::Option* add_words(CLI::App& app, const std::string& name, Kind& value,
                       const std::string& description,
                       const std::vector<std::pair<std::string, Kind>>& words) {
  std::string listed, now;
  for (const auto& [word, kind] : words) {
    listed += (listed.empty() ? "" : ",") + word;
    if (kind == value) now = word;
  }
  return app.add_option(name, value, description)
      ->transform(CLI::CheckedTransformer(words, CLI::ignore_case))
      ->default_str(now)
      ->option_text("{" + listed + "}");
}

}  // namespace trireme::arguments
