#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace trireme::arguments {

/// A script for bash that completes verbs, long options and file names of the program.
std::string bash_completion(const CLI::App& app);

/// The program as a page for man: verbs, each with its options and example.
std::string man_page(const CLI::App& app);

/// --bash-completion and --man-page, which print them.
void add_page_options(CLI::App& app);

}  // namespace trireme::arguments
