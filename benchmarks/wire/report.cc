#include "benchmarks/wire/report.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "benchmarks/wire/statistics.h"

namespace trireme::bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string number(double value, int digits) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

/// Ratios span thousandths to hundreds: digits by size.
std::string ratio_text(double value) {
  if (std::isnan(value)) return "-";
  return number(value, value < 0.1 ? 4 : value < 10 ? 2 : 1);
}

std::string time_text(double us) { return number(us, us < 100 ? 2 : 1); }

Json json_number(double value) { return std::isnan(value) ? Json() : Json(value); }

/// Elements and ranks that are not as they should be, in one column.
std::string wrong_text(const Result& result) {
  if (!result.unavailable.empty()) return "-";
  std::string text = std::to_string(result.wrong);
  if (result.differing_ranks > 0) text += fmt::format("+{}r", result.differing_ranks);
  return text;
}

std::string complaint(const std::string& name, const Row& row, const Result& result) {
  return fmt::format("WRONG: {} {} of {}: {} elements, {} ranks with other bits than rank 0\n",
                     name, collectives::to_text(row.what.operation), size_text(row.what.bytes),
                     result.wrong, result.differing_ranks);
}

Json json_of(const Setting& setting, const Row& row) {
  const Result& ours = row.ours();
  return {{"op", collectives::to_text(row.what.operation)},
          {"bytes", row.what.bytes},
          {"count", row.what.count()},
          {"dtype", to_text(row.what.dtype)},
          {"ranks", setting.num_ranks},
          {"transport", setting.transport},
          {"registered", row.what.is_registered},
          {"algorithm", setting.algorithm},
          {"iterations", ours.times_us.size()},
          {"p50_us", json_number(ours.p50_us())},
          {"p95_us", json_number(ours.p95_us())},
          {"algbw_gb_per_s", json_number(algorithm_gb_per_s(row))},
          {"busbw_gb_per_s", json_number(bus_gb_per_s(row, setting.num_ranks))},
          {"wrong", ours.unavailable.empty() ? Json(ours.wrong) : Json()},
          {"differing_ranks", ours.unavailable.empty() ? Json(ours.differing_ranks) : Json()},
          {"cpu_s_per_byte", json_number(cpu_s_per_byte(row))},
          {"exposed_share", json_number(exposed_share(row))},
          {"over_bound", json_number(over_bound(row))},
          {"peer", nullptr},
          {"peer_p50_us", nullptr},
          {"peer_p95_us", nullptr},
          {"peer_wrong", nullptr},
          {"peer_cpu_s_per_byte", nullptr},
          {"peer_exposed_share", nullptr},
          {"ratio", nullptr}};
}

}  // namespace

double algorithm_gb_per_s(const Row& row) {
  if (row.what.bytes == 0) return kNone;
  return static_cast<double>(row.what.bytes) / row.ours().p50_us() * 1e-3;
}

double bus_gb_per_s(const Row& row, int num_ranks) {
  return algorithm_gb_per_s(row) * bus_factor(row.what.operation, num_ranks);
}

double cpu_s_per_byte(const Row& row, std::size_t contestant) {
  const Result& result = row.results.at(contestant);
  const auto calls = static_cast<double>(result.times_us.size());
  if (row.what.bytes == 0 || calls == 0) return kNone;
  return result.cpu_s / calls / static_cast<double>(row.what.bytes);
}

double exposed_share(const Row& row, std::size_t contestant) {
  const Result& result = row.results.at(contestant);
  return quantile(result.exposed_us, 0.5) / result.p50_us();
}

double over_bound(const Row& row) {
  return row.ours().p50_us() / quantile(row.ours().pass_us, 0.5);
}

double ratio(const Row& row, std::size_t peer_index) {
  return row.results.at(peer_index + 1).p50_us() / row.ours().p50_us();
}

std::string heading(const Setting& setting) {
  std::string text =
      fmt::format("{:<14} {:>8} {:>10} {:>11} {:>11} {:>8} {:>8} {:>6} {:>9}", "operation", "size",
                  "count", "p50 us", "p95 us", "algbw", "busbw", "wrong", "cpu s/GB");
  if (setting.is_overlapped) text += fmt::format(" {:>9}", "exposed %");
  if (setting.is_bounded) text += fmt::format(" {:>7}", "/bound");
  for (const std::string& peer : setting.peers) {
    text += fmt::format("  {:>11} {:>6} {:>9}", peer + " p50", "/ours", "cpu s/GB");
    if (setting.is_overlapped) text += fmt::format(" {:>9}", "exposed %");
  }
  return text + "\n";
}

std::string line(const Setting& setting, const Row& row) {
  const Result& ours = row.ours();
  std::string text = fmt::format(
      "{:<14} {:>8} {:>10} {:>11} {:>11} {:>8} {:>8} {:>6} {:>9}",
      collectives::to_text(row.what.operation), size_text(row.what.bytes), row.what.count(),
      time_text(ours.p50_us()), time_text(ours.p95_us()), number(algorithm_gb_per_s(row), 3),
      number(bus_gb_per_s(row, setting.num_ranks), 3), wrong_text(ours),
      number(cpu_s_per_byte(row) * 1e9, 3));
  const auto exposed = [&](std::size_t contestant) {
    if (!setting.is_overlapped) return std::string();
    return fmt::format(" {:>9}", number(exposed_share(row, contestant) * 100, 1));
  };
  text += exposed(0);
  if (setting.is_bounded) text += fmt::format(" {:>7}", ratio_text(over_bound(row)));
  for (std::size_t i = 0; i < setting.peers.size(); ++i) {
    text += fmt::format("  {:>11} {:>6} {:>9}", time_text(row.results[i + 1].p50_us()),
                        ratio_text(ratio(row, i)), number(cpu_s_per_byte(row, i + 1) * 1e9, 3));
    text += exposed(i + 1);
  }
  return text + "\n";
}

std::string summary(const Setting& setting, std::span<const Row> rows) {
  std::string text;
  for (std::size_t i = 0; i < setting.peers.size(); ++i) {
    std::vector<double> ratios;
    for (const Row& row : rows) {
      if (const double one = ratio(row, i); !std::isnan(one)) ratios.push_back(one);
    }
    text += fmt::format("{} / ours: geometric mean {} of {} cases\n", setting.peers[i],
                        ratio_text(geometric_mean(ratios)), ratios.size());
  }
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.results.size(); ++i) {
      if (row.results[i].is_right()) continue;
      text += complaint(i == 0 ? "ours" : setting.peers[i - 1], row, row.results[i]);
    }
  }
  return text;
}

Json to_json(const Setting& setting, std::span<const Row> rows) {
  Json result = Json::array();
  for (const Row& row : rows) {
    const Json own = json_of(setting, row);
    if (setting.peers.empty()) result.push_back(own);
    for (std::size_t i = 0; i < setting.peers.size(); ++i) {
      Json one = own;
      const Result& peer = row.results[i + 1];
      one["peer"] = setting.peers[i];
      one["peer_p50_us"] = json_number(peer.p50_us());
      one["peer_p95_us"] = json_number(peer.p95_us());
      if (peer.unavailable.empty()) one["peer_wrong"] = peer.wrong + peer.differing_ranks;
      one["peer_cpu_s_per_byte"] = json_number(cpu_s_per_byte(row, i + 1));
      one["peer_exposed_share"] = json_number(exposed_share(row, i + 1));
      one["ratio"] = json_number(ratio(row, i));
      result.push_back(one);
    }
  }
  return result;
}

}  // namespace trireme::bench
