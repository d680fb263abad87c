#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

namespace trireme::arguments {

/// The name that a program was called by, without its folder; `trireme` where there is none.
std::string program_name(std::span<const char* const> argv);

/// What all options have in common, for those that are added from here on: of one that is repeated
/// the last counts; help without what excludes what.
void set_up(CLI::App& app);

/// Once all options and verbs are there: files of --config and numbers are checked (config_file.h,
/// numbers.h), examples call the program by its name.
void finish_set_up(CLI::App& app);

/// Parses the words after the program's name; `_` in the name of an option is as good as `-`, but
/// not in what follows `--`. Errors: CLI::ParseError, also for help and version.
void parse(CLI::App& app, std::span<const char* const> argv);

/// The verb that was called, the innermost; the app itself where none was.
const CLI::App& called(const CLI::App& app);

/// What is wrong with a command line, what may have been meant, and where help is.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

/// The verbs below an app.
std::vector<std::string> names_of_verbs(const CLI::App& app);

/// Long options, `--steps`: of a verb, and of those above it.
std::vector<std::string> names_of_options(const CLI::App& verb);

}  // namespace trireme::arguments
