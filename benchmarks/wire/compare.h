#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/wire/contestant.h"

namespace trireme::bench {

/// What a contestant did in a case, over all rounds.
struct Result {
  std::string unavailable;       ///< Why it was not run; empty where it was.
  std::vector<double> times_us;  ///< Of each iteration, the slowest rank's.
  double cpu_s = 0;              ///< Of all ranks together.
  std::int64_t wrong = 0;        ///< Elements of results, over ranks and rounds; see `add_answers`.
  int differing_ranks = 0;       ///< Whose result had other bits than rank 0's, over rounds.

  std::vector<double> exposed_us;  ///< Of each iteration beside a sleep, what it added to that.
  std::vector<double> pass_us;     ///< In which all ranks read and wrote their buffers once.

  double p50_us() const;
  double p95_us() const;

  /// Whether every result that was checked is right.
  bool is_right() const { return wrong == 0 && differing_ranks == 0; }
};

/// Adds the answers of a round, one of each rank. Of a barrier, a rank is wrong that left before
/// the last had entered.
void add_answers(Result& result, Collective operation, std::span<const Answer> answers);

struct CompareOptions {
  int rounds = 5;
  /// Also measures what a call adds to a sleep of twice its own median time.
  bool is_overlapped = false;
  /// Also measures in which time the first contestant's ranks read and write their buffers once.
  bool is_bounded = false;
  std::chrono::milliseconds deadline{300'000};  ///< Of an order.
};

using Contestants = std::vector<std::unique_ptr<Contestant>>;

/// Has the contestants run a case in turn, several rounds, each of which begins with another one;
/// their results in order. One to which the operation is unknown is asked once.
///
/// Errors   those of `Contestant::run`.
std::vector<Result> compare(const Case& one, const Contestants& contestants,
                            const CompareOptions& options);

}  // namespace trireme::bench
