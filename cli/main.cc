#include "trireme/command/command_line.h"

/// The executable `trireme`: every verb, with the recipes as its models. There are none yet; a
/// program of one's own gets the same verbs (examples/01_own_model).
int main(int argc, char** argv) {
  return trireme::run_command_line(argc, argv, std::map<std::string, trireme::Recipe>{});
}
