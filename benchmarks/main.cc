// The program `trireme-bench`, which `trireme bench` starts.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <span>

#include "benchmarks/kernels/command_line.h"
#include "benchmarks/kernels/operator_cases.h"
#include "benchmarks/wire/command_line.h"
#include "trireme/arguments/program.h"
#include "trireme/base/environment.h"

namespace {

/// Again with an allocator that takes large pages, as peers have and NumPy takes for itself: it has
/// to be told at the start. Where that fails, with small ones.
void restart_with_large_pages(char** argv) {
  constexpr const char* kTunables = "GLIBC_TUNABLES";
  if (std::getenv(kTunables) != nullptr) return;
  setenv(kTunables, "glibc.malloc.hugetlb=1", 1);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace trireme;
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return arguments::run([&] {
    const Environment environment = read_environment();
    CLI::App app("Times parts of the library beside those of others.", "trireme bench");
    arguments::set_up(app);
    app.require_subcommand(1);
    CLI::App* wire = app.add_subcommand("wire", "Collectives, beside those of other libraries");
    CLI::App* kernels_app =
        app.add_subcommand("kernels", "Kernels and metrics, beside the fastest other libraries");
    const auto run_wire =
        bench::add_command(*wire, {.argv = words, .environment = environment, .deadline = {}});
    const auto run_kernels = kernels::bench::add_command(
        *kernels_app, {.python = environment.python.value_or(TRIREME_PYTHON_DEFAULT),
                       .script = TRIREME_PEERS_SCRIPT,
                       .more_cases = kernels::bench::operator_cases});
    kernels_app->footer("Example: trireme bench kernels nms --against best");
    return arguments::run_program(app, words, [&] {
      if (!kernels_app->parsed()) return run_wire();
      restart_with_large_pages(argv);
      return run_kernels();
    });
  });
}
