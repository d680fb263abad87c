#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trireme/session/run_document.h"

namespace trireme::command {

using session::GivenOptions;

/// What was given to a verb, in words, in a file of --config or by the run that it goes on with; not
/// what says which run that is, nor how it is printed.
GivenOptions given_options(const CLI::App& verb);

/// Parses as `parse` of arguments.h. `train --resume`, `follow` and `explain` then have the options that run.json says the run
/// was started with, unless they are given now, or what is given now is in their place: of those that
/// shape the plan, one stands for all.
///
/// Errors   CLI::ParseError; those of load_kept_run.
void parse_with_run(CLI::App& app, std::span<const char* const> argv);

}  // namespace trireme::command
