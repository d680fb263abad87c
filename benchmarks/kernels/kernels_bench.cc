// `trireme bench kernels`, with the operators where the build has torch.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "benchmarks/kernels/operator_cases.h"
#include "trireme/base/environment.h"
#include "trireme/base/error.h"
#include "trireme/kernels/bench/command_line.h"

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
  restart_with_large_pages(argv);
  CLI::App app("Times kernels beside those of other libraries.");
  try {
    const trireme::Environment environment = trireme::read_environment();
    const auto run = trireme::kernels::bench::add_command(
        app, {.python = environment.python.value_or(TRIREME_PYTHON_DEFAULT),
              .script = TRIREME_PEERS_SCRIPT,
              .more_cases = trireme::kernels::bench::operator_cases});
    CLI11_PARSE(app, argc, argv);
    return run();
  } catch (const trireme::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
