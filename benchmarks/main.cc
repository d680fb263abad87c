// The program `trireme-bench`, which `trireme bench` starts.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "benchmarks/kernels/command_line.h"
#include "benchmarks/kernels/operator_cases.h"
#include "benchmarks/wire/command_line.h"
#include "trireme/base/environment.h"
#include "trireme/base/error.h"

namespace {

/// Again with an allocator that takes large pages, as peers have and NumPy takes for itself: it has
/// to be told at the start. Where that fails, with small ones.
void restart_with_large_pages(char** argv) {
  constexpr const char* kTunables = "GLIBC_TUNABLES";
  if (std::getenv(kTunables) != nullptr) return;
  setenv(kTunables, "glibc.malloc.hugetlb=1", 1);
  execv("/proc/self/exe", argv);
}

int run(int argc, char** argv) {
  const trireme::Environment environment = trireme::read_environment();
  CLI::App app("Times parts of the library beside those of others.", "trireme bench");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.require_subcommand(1);
  CLI::App* wire = app.add_subcommand("wire", "Collectives, beside those of other libraries");
  CLI::App* kernels = app.add_subcommand("kernels", "Kernels and metrics, beside the best peers");
  const auto run_wire = trireme::bench::add_command(
      *wire,
      {.argv = {argv, static_cast<std::size_t>(argc)}, .environment = environment, .deadline = {}});
  const auto run_kernels = trireme::kernels::bench::add_command(
      *kernels, {.python = environment.python.value_or(TRIREME_PYTHON_DEFAULT),
                 .script = TRIREME_PEERS_SCRIPT,
                 .more_cases = trireme::kernels::bench::operator_cases});
  kernels->footer("Example: trireme bench kernels nms --against best");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!kernels->parsed()) return run_wire();
  restart_with_large_pages(argv);
  return run_kernels();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const trireme::Error& error) {
    std::fprintf(stderr, "trireme: %s\n", error.what());
    return error.kind() == trireme::ErrorKind::kInvalidArgument ? 2 : 1;
  }
}
