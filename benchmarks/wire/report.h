#pragma once

#include <span>
#include <string>
#include <vector>

#include "benchmarks/wire/compare.h"
#include "trireme/base/json.h"

namespace trireme::bench {

/// What is the same in all cases of a run.
struct Setting {
  int num_ranks = 2;
  std::string transport;
  std::string algorithm;
  std::vector<std::string> peers;  ///< Names of the other contestants.
  bool is_overlapped = false;      ///< What a call adds to a sleep is measured too.
  bool is_bounded = false;         ///< The time of a pass over the buffers is measured too.
};

/// A case and what came of it: ours first, then the peers' in the setting's order.
struct Row {
  Case what;
  std::vector<Result> results;

  const Result& ours() const { return results.front(); }
};

/// Billions of bytes a second: the buffer, and what must cross a rank's link for it, over the
/// median time. NaN where the case was not run or has no bytes.
double algorithm_gb_per_s(const Row& row);
double bus_gb_per_s(const Row& row, int num_ranks);

/// Seconds of all ranks' cores for each byte of the buffer; NaN as above.
///
/// contestant   0: ours; peers from 1 on.
double cpu_s_per_byte(const Row& row, std::size_t contestant = 0);

/// Share of its median time that a call adds to a sleep of twice that, at the median; NaN where it
/// was not measured.
double exposed_share(const Row& row, std::size_t contestant = 0);

/// Our median time over that in which all ranks read and write their buffers once; NaN as above.
double over_bound(const Row& row);

/// The peer's median time over ours; NaN where one of both has none.
double ratio(const Row& row, std::size_t peer_index);

/// The table: a heading, a line for each case, and the geometric mean of each peer's ratios with
/// whatever was wrong. Lines end with a line feed.
std::string heading(const Setting& setting);
std::string line(const Setting& setting, const Row& row);
std::string summary(const Setting& setting, std::span<const Row> rows);

/// An array with an object for each case and peer, or each case where there are no peers. What does
/// not apply is null.
Json to_json(const Setting& setting, std::span<const Row> rows);

}  // namespace trireme::bench
