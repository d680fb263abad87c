#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/kernels/case.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace trireme::kernels::bench {

/// What the program knows that runs the table.
struct Place {
  std::string python;            ///< That runs the peers.
  std::filesystem::path script;  ///< benchmarks/kernels/peers.py

  /// Cases after those of `all_cases`; null: none.
  std::vector<CaseEntry> (*more_cases)() = nullptr;
};

/// Adds the options of `trireme bench kernels`. The result runs it: prints the table; 0, or 1 where
/// a result of ours differs from a peer's, or a peer fails.
std::function<int()> add_command(CLI::App& app, const Place& place);

}  // namespace trireme::kernels::bench
