#pragma once

#include <CLI/CLI.hpp>

namespace trireme::arguments {

/// Of an option's number: 1 or more (a real: above 0); 0 or more.
CLI::Validator positive();
CLI::Validator not_negative();

/// Has every option of a number, of this app and its verbs, refuse what is none, or too large for
/// its type: the parser itself takes `010` as 8, -1 as a count and 1e20 as what is left of it.
void check_numbers(CLI::App& app);

}  // namespace trireme::arguments
