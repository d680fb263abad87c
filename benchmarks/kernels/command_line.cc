#include "benchmarks/kernels/command_line.h"

#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "benchmarks/kernels/bounds.h"
#include "benchmarks/kernels/origin.h"
#include "benchmarks/kernels/runner.h"
#include "trireme/base/file_lock.h"
#include "trireme/base/files.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels::bench {
namespace {

constexpr const char* kLock = "/tmp/trireme_benchmark.lock";  // that of benchmarks/machine.h

struct Options {
  std::string name;
  std::string json_file;
  bool is_list = false;
  RunnerOptions runner;
  std::vector<CaseEntry> (*more_cases)() = nullptr;
  std::filesystem::path source;  ///< A folder of the repository, whose commit is told.
};

std::vector<CaseEntry> chosen_cases(const Options& options) {
  std::vector<CaseEntry> chosen;
  for (auto* cases : {&all_cases, options.more_cases}) {
    if (cases == nullptr) continue;
    for (CaseEntry& entry : cases()) {
      if (entry.name.find(options.name) != std::string::npos) chosen.push_back(std::move(entry));
    }
  }
  if (chosen.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "no kernel's name contains \"" + options.name + "\"; --list shows them");
  }
  return chosen;
}

int list(const Options& options) {
  for (const CaseEntry& entry : chosen_cases(options)) {
    std::printf("%-28s %-34s", entry.name.c_str(), entry.shape.c_str());
    for (const std::string& peer : entry.peers) std::printf(" %s", peer.c_str());
    std::printf("\n");
  }
  return 0;
}

/// Freed memory is kept, as by the peers' process (peer.cc).
void keep_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

int run(const Options& options) {
  keep_memory();
  const std::vector<CaseEntry> cases = chosen_cases(options);
  if (!options.json_file.empty()) check_writable(options.json_file);
  const FileLock lock(kLock, std::chrono::hours(1),
                      [] { std::fprintf(stderr, "waiting for another benchmark\n"); });
  double load[3] = {-1, -1, -1};
  if (getloadavg(load, 3) != 3) load[0] = load[1] = load[2] = -1;
  const Origin origin = origin_of(options.source);
  std::printf("commit %s; %s; %s UTC\n", origin.commit.c_str(), origin.processor.c_str(),
              origin.time.c_str());
  std::printf("%d rounds, instructions: %s; load before: %.2f %.2f %.2f\n", options.runner.rounds,
              to_string(isa()).c_str(), load[0], load[1], load[2]);
  const Bounds bounds = measure_bounds(options.runner.num_threads);
  std::fputs(heading(bounds, options.runner.num_threads).c_str(), stdout);
  std::vector<Row> rows;
  bool is_right = true;
  for (const CaseEntry& entry : cases) {
    rows.push_back(run_case(entry, options.runner));
    std::fputs(lines(rows.back(), bounds).c_str(), stdout);
    std::fflush(stdout);
    is_right &= std::ranges::none_of(rows.back().timings, [](const Timing& timing) {
      return timing.is_wrong || timing.has_failed;
    });
  }
  if (!options.json_file.empty()) {
    Json json = to_json(rows, bounds, options.runner.num_threads);
    json["commit"] = origin.commit;
    json["processor"] = origin.processor;
    json["time"] = origin.time;
    json["load"] = load;
    write_file_atomically(options.json_file, readable_text(json));
  }
  return is_right ? 0 : 1;
}

}  // namespace

std::function<int()> add_command(CLI::App& app, const Place& place) {
  auto options = std::make_shared<Options>();
  options->runner.peer_start = {.python = place.python, .script = place.script};
  options->more_cases = place.more_cases;
  options->source = place.script.parent_path();
  app.add_option("name", options->name, "Those whose name contains it; default: all");
  app.add_flag("--list", options->is_list,
               "Print their names, shapes and other libraries, run nothing");
  app.add_option(
         "--against", options->runner.peers,
         "Other libraries to run in turn with ours, by name; best: each kernel's first; all")
      ->delimiter(',');
  app.add_option("--threads", options->runner.num_threads, "Of ours and of other libraries")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--rounds", options->runner.rounds, "Turns of each library")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--json", options->json_file, "Also write the rows to this file");
  return [options] {
    if (options->is_list) return list(*options);
    std::string folder = std::filesystem::temp_directory_path() / "trireme-kernels-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) throw_system_error("make the folder", folder, errno);
    options->runner.folder = std::filesystem::path(folder) / "case";
    options->runner.peer_start.num_threads = options->runner.num_threads;
    const int code = run(*options);
    std::filesystem::remove_all(folder);
    return code;
  };
}

}  // namespace trireme::kernels::bench
