#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>

#include "trireme/arguments/parse.h"
#include "trireme/base/exit_code.h"

namespace trireme::arguments {

/// Prints `trireme: TEXT` to standard error. Returns `code`.
int report(const char* text, int code);

/// Runs `body` and flushes standard output. Returns its exit code; what it throws becomes one line on
/// standard error and kMisuse (an Error kInvalidArgument) or kFailed.
int run(const std::function<int()>& body);

/// Parses the words and runs `body`, of a program whose app was set up (parse.h) and has all its
/// options and verbs. Prints help; says what is wrong with a command line, kMisuse. Throws nothing.
///
/// parse_words   `parse`, or what adds to the words first.
int run_program(
    CLI::App& app, std::span<const char* const> argv, const std::function<int()>& body,
    const std::function<void(CLI::App&, std::span<const char* const>)>& parse_words = parse);

}  // namespace trireme::arguments
