#pragma once

#include <functional>
#include <map>
#include <string>

#include "trireme/model.h"

namespace CLI {
class App;
}

namespace trireme {

/// Gives a program every verb: record, profile, partition, train, show and the others of `--help`.
///
///     int main(int argc, char** argv) { return trireme::run_command_line(argc, argv, make); }
///
/// `make` is called for the verbs that need the model, under the seed of the command line.
/// Prints results to standard output, errors to standard error; throws nothing.
/// Returns   0 done, 1 failed (a file, the machine, a difference that verify found), 2 misuse (the
///           command line or something else that the caller can put right).
int run_command_line(int argc, const char* const* argv, const MakeWorkload& make);

/// A file, as the verb `show` prints it.
struct ShownDocument {
  std::string json;  ///< The document without its head; one JSON value.
  std::string text;
};

/// A workload with options of its own.
struct Recipe {
  MakeWorkload make;

  /// Adds them to the program's, bound to what `make` reads; may be null. Their names begin with
  /// the recipe's: `--t5-size`.
  std::function<void(CLI::App&)> add_options = nullptr;

  /// Forms of documents of its own, which `show` prints too: of the field `format`, what shows a file.
  std::map<std::string, std::function<ShownDocument(const std::string& file)>> documents = {};
};

/// As above for several workloads, picked by `--model`.
int run_command_line(int argc, const char* const* argv,
                     const std::map<std::string, Recipe>& recipes);

}  // namespace trireme
