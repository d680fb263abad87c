// `trireme bench kernels` without the rooms that need torch.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "trireme/base/environment.h"
#include "trireme/base/error.h"
#include "trireme/kernels/bench/command_line.h"

int main(int argc, char** argv) {
  CLI::App app("Times kernels beside those of other libraries.");
  try {
    const trireme::Environment environment = trireme::read_environment();
    const auto run = trireme::kernels::bench::add_command(
        app, {.python = environment.python.value_or(TRIREME_PYTHON_DEFAULT),
              .script = TRIREME_PEERS_SCRIPT});
    CLI11_PARSE(app, argc, argv);
    return run();
  } catch (const trireme::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
