#include "benchmarks/kernels/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "benchmarks/kernels/difference.h"
#include "trireme/error.h"

namespace trireme::kernels::bench {
namespace {

double time_ms(Case& one) {
  const auto begin = std::chrono::steady_clock::now();
  one.run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// The peers of a case that were asked for.
std::vector<std::string> wanted_peers(const CaseEntry& entry, const RunnerOptions& options) {
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < entry.peers.size(); ++i) {
    const bool is_named = std::ranges::count(options.peers, entry.peers[i]) > 0;
    const bool is_best = i == 0 && std::ranges::count(options.peers, "best") > 0;
    const bool is_all = std::ranges::count(options.peers, "all") > 0;
    if (is_named || is_best || is_all) wanted.push_back(entry.peers[i]);
  }
  return wanted;
}

void check(const CaseEntry& entry, const Tensors& ours, const std::filesystem::path& its_file,
           Timing& timing) {
  const Difference difference =
      compare(ours, Tensors::read(its_file), {entry.tolerance, entry.tolerances});
  timing.difference = difference.largest;
  timing.is_wrong = !difference.is_comparable || difference.excess > 1;
  if (!difference.is_comparable) {
    timing.problem = "not compared: " + difference.where;
  } else if (timing.is_wrong) {
    timing.problem = fmt::format("differs by {:.1e} at {}", difference.largest, difference.where);
  }
}

Timing run_beside(const CaseEntry& entry, Case& ours, const std::string& peer,
                  const RunnerOptions& options, std::vector<double>& ours_ms) {
  Timing timing{.who = peer};
  const std::filesystem::path inputs = options.folder / "inputs.safetensors";
  const std::filesystem::path outputs = options.folder / "outputs.safetensors";
  try {
    PeerProcess process(options.peer_start);
    process.load(peer, entry.name, inputs, outputs);
    timing.who = process.version();
    check(entry, ours.outputs(), outputs, timing);
    for (int round = 0; round < options.rounds && !timing.is_wrong; ++round) {
      ours_ms.push_back(time_ms(ours));
      timing.ms.push_back(process.run());
    }
  } catch (const Error& error) {
    timing.problem = error.message();
    timing.has_failed = error.kind() != ErrorKind::kUnavailable;
    timing.ms.clear();
  }
  return timing;
}

}  // namespace

Row run_case(const CaseEntry& entry, const RunnerOptions& options) {
  std::filesystem::remove_all(options.folder);
  std::filesystem::create_directories(options.folder);
  const std::unique_ptr<Case> ours =
      entry.make({.num_threads = options.num_threads, .folder = options.folder});
  ours->inputs().write(options.folder / "inputs.safetensors");
  ours->check();
  Row row{.entry = entry, .timings = {{.who = "ours"}}};
  std::vector<double> ours_ms;
  for (const std::string& peer : wanted_peers(entry, options)) {
    row.timings.push_back(run_beside(entry, *ours, peer, options, ours_ms));
  }
  while (ours_ms.size() < static_cast<std::size_t>(options.rounds)) {
    ours_ms.push_back(time_ms(*ours));
  }
  row.timings.front().ms = ours_ms;
  return row;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto rank = static_cast<std::int64_t>(std::ceil(q * static_cast<double>(values.size())));
  return values[std::clamp<std::int64_t>(rank - 1, 0, std::ssize(values) - 1)];
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace trireme::kernels::bench
