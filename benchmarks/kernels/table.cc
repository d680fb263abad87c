#include <fmt/format.h>

#include <algorithm>

#include "benchmarks/kernels/runner.h"

namespace trireme::kernels::bench {
namespace {

/// Of the time that memory or arithmetic alone would take, the longer one, in what it took.
double share_of_bound(const CaseEntry& entry, const Bounds& bounds, double ms) {
  const double least_s =
      std::max(entry.bytes / bounds.bytes_per_s, entry.flops / bounds.flops_per_s);
  return least_s * 1e3 / ms;
}

std::string percent(double share) {
  return share == 0 ? "-" : fmt::format("{:.0f} %", share * 100);
}

}  // namespace

std::string heading(const Bounds& bounds, int num_threads) {
  return fmt::format(
      "{} thread(s); bounds: {:.1f} GB/s read and written, {:.0f} GFLOP/s of f32\n"
      "{:<28} {:<34} {:>10} {:>10} {:>8} {:>7}  {:<30} {:>10} {:>7} {:>9}\n",
      num_threads, bounds.bytes_per_s / 1e9, bounds.flops_per_s / 1e9, "kernel", "shape", "p50 ms",
      "p95 ms", "GB/s", "bound", "peer", "p50 ms", "/ours", "differs");
}

std::string lines(const Row& row, const Bounds& bounds) {
  const Timing& ours = row.timings.front();
  const double ms = median(ours.ms);
  const double gb_per_s = row.entry.bytes / ms / 1e6;
  std::string text = fmt::format("{:<28} {:<34} {:>10.3f} {:>10.3f} {:>8} {:>7}", row.entry.name,
                                 row.entry.shape, ms, quantile(ours.ms, 0.95),
                                 row.entry.bytes == 0 ? "-" : fmt::format("{:.1f}", gb_per_s),
                                 percent(share_of_bound(row.entry, bounds, ms)));
  for (std::size_t i = 1; i < row.timings.size(); ++i) {
    const Timing& peer = row.timings[i];
    if (i > 1) text += fmt::format("\n{:<102}", "");
    text += fmt::format("  {:<30}", peer.who);
    if (!peer.ms.empty()) {
      text += fmt::format(" {:>10.3f} {:>7.2f} {:>9.1e}", median(peer.ms), median(peer.ms) / ms,
                          peer.difference);
    }
    if (!peer.problem.empty()) text += " " + peer.problem;
  }
  return text + "\n";
}

Json to_json(const std::vector<Row>& rows, const Bounds& bounds, int num_threads) {
  Json all = Json::array();
  for (const Row& row : rows) {
    Json timings = Json::array();
    for (const Timing& timing : row.timings) {
      timings.push_back({{"who", timing.who},
                         {"ms", timing.ms},
                         {"problem", timing.problem},
                         {"difference", timing.difference},
                         {"is_wrong", timing.is_wrong},
                         {"has_failed", timing.has_failed}});
    }
    all.push_back({{"kernel", row.entry.name},
                   {"shape", row.entry.shape},
                   {"bytes", row.entry.bytes},
                   {"flops", row.entry.flops},
                   {"timings", timings}});
  }
  return {{"threads", num_threads},
          {"bytes_per_s", bounds.bytes_per_s},
          {"flops_per_s", bounds.flops_per_s},
          {"rows", all}};
}

}  // namespace trireme::kernels::bench
