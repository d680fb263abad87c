#pragma once

#include <functional>

#include "trireme/launch/run_ranks.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace trireme::bench {

/// Adds the options of `trireme bench wire`. The result runs it: prints the table; 0, or 1 where a
/// result is wrong.
///
/// program   as whose ranks our contestant's start; its deadline is --timeout's.
std::function<int()> add_command(CLI::App& app, const launch::RankProgram& program);

}  // namespace trireme::bench
