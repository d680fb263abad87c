#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/wire/cases.h"

namespace trireme::bench {

/// What the ranks of a contestant are told to do.
struct Order {
  Case what;
  int iterations = 1;
  int warmups = 0;
  /// If above 0, the times are what a call adds to a sleep of that long that it runs beside.
  std::int64_t sleep_us = 0;
  /// The times are not of calls: all ranks at once read and write their buffers once.
  bool is_pass = false;

  bool operator==(const Order&) const = default;
};

/// One line: `all_reduce 65536 f32 200 20 0 0 0`: operation, bytes, dtype, iterations, warm-ups,
/// registered, sleep, pass.
std::string to_text(const Order& order);

/// The line that ends a contestant.
inline constexpr std::string_view kEnd = "end";

/// Inverse of `to_text`. kCorruptData, with the line, where it is none.
Order parse_order(std::string_view line);

/// What one rank found.
struct Answer {
  std::string unavailable;       ///< Why the operation was not run; empty where it was.
  std::vector<double> times_us;  ///< Of each iteration.
  double cpu_s = 0;              ///< Of all threads of the rank, over the iterations.
  std::int64_t wrong = 0;        ///< Elements of the checked result that are not as expected.
  std::string digest;            ///< Of a result that is the same on all ranks.
  double entered_us = 0;         ///< Of the checked call: begin and end on the machine's clock.
  double left_us = 0;

  bool operator==(const Answer&) const = default;
};

/// One line of JSON.
std::string to_text(const Answer& answer);

/// Inverse of `to_text`. kCorruptData where it is none.
Answer parse_answer(std::string_view line);

}  // namespace trireme::bench
