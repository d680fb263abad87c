// Question: what does it cost to open files that lie elsewhere, the first time and again, beside the same files here?
//
// A server in Python on the loopback gives eight files of JSON lines; each opening is a new process. The records are those of the
// files here; exit code 1 where they are not.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "benchmarks/machine.h"
#include "tests/remote/store_server.h"
#include "trireme/data.h"

namespace trireme::benchmarks {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kFiles = 8;
constexpr std::int64_t kFileBytes = std::int64_t{64} << 20;

void write_files(const fs::path& folder) {
  fs::create_directories(folder);
  for (int f = 0; f < kFiles; ++f) {
    std::ofstream file(folder / (std::to_string(f) + ".jsonl"), std::ios::binary);
    std::uint64_t random = 1 + static_cast<std::uint64_t>(f);
    for (std::int64_t bytes = 0; bytes < kFileBytes;) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const std::string line =
          fmt::format("{{\"text\": \"{:0>{}}\"}}\n", random, 400 + random % 1600);
      file << line;
      bytes += std::ssize(line);
    }
  }
}

/// Exit code of the process that opens them: 0 where they are as the files here.
int open_files(const char* what, const std::string& name, const fs::path& here) {
  const auto begin = Clock::now();
  const auto records = data::open_records({name});
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  struct rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto time_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  const double busy = time_of(used.ru_utime) + time_of(used.ru_stime);
  const double mib = static_cast<double>(kFiles * kFileBytes) / (1 << 20);
  const bool is_same = records->identity() == data::open_records({here})->identity();
  fmt::print("{:<22} opened in {:.3f} s  {:.0f} MiB/s  computing {:.2f} s  wrong {}\n", what,
             seconds, mib / seconds, busy, is_same ? 0 : 1);
  std::fflush(stdout);
  return is_same ? 0 : 1;
}

int in_new_process(const char* what, const std::string& name, const fs::path& here) {
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(open_files(what, name, here));
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}

int run() {
  const Machine machine;
  fmt::print("load before: {}\n", machine.load());
  const fs::path folder =
      fs::temp_directory_path() / ("trireme_remote_bench_" + std::to_string(::getpid()));
  int result = 0;
  {
    const test::StoreServer server(folder);
    if (!server.is_there()) {
      fmt::print("left out: no Python to run the server; start it from the repository's root\n");
      return 0;
    }
    const fs::path here = folder / "objects" / "b";
    write_files(here);
    ::setenv("AWS_ENDPOINT_URL", server.url().c_str(), 1);
    ::setenv("TRIREME_CACHE_DIR", (folder / "cache").c_str(), 1);
    std::fflush(stdout);
    for (int i = 0; i < 3; ++i) {
      fs::remove_all(folder / "cache");
      result |= in_new_process("here", here, here);
      result |= in_new_process("elsewhere, first time", "s3://b/", here);
      result |= in_new_process("elsewhere, again", "s3://b/", here);
    }
  }
  fs::remove_all(folder);
  return result;
}

}  // namespace
}  // namespace trireme::benchmarks

int main() { return trireme::benchmarks::run(); }
