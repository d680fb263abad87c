#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::collectives {

/// Memory that a rank's steps work on.
enum class Place : std::uint8_t {
  kData,     ///< The user's buffer.
  kInput,    ///< What the user gives to be read only: all_to_all.
  kScratch,  ///< The library's own, with any content at the start.
};

/// Elements [begin, end) of a place.
struct Range {
  Place place = Place::kData;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

enum class StepKind : std::uint8_t { kSend, kRecv, kReduce, kCopy };

/// One entry of a schedule. Two examples as text:
///
///     recv scratch[0, 16) from 2
///     reduce data[0, 16) = data[0, 16), scratch[0, 16) after 0, 1
struct Step {
  StepKind kind = StepKind::kSend;
  int peer = -1;               ///< Group rank, of a send or recv.
  Range target;                ///< What is written; not of a send.
  std::vector<Range> sources;  ///< What is read, one size; of a reduce in the order of THE tree.
  std::vector<int> after;      ///< Earlier steps that must have ended before this one begins.

  bool operator==(const Step&) const = default;
};

/// What one rank of a group does in an operation.
///
/// A step begins once those that it is `after` have ended. A send and its recv are the k-th between
/// their ranks in that direction, on both sides; they begin in this order, and end together at the
/// earliest when both have begun. So nothing depends on time, and any number of steps is under way.
struct Schedule {
  std::vector<Step> steps;
  std::int64_t scratch_elements = 0;

  bool operator==(const Schedule&) const = default;
};

std::string to_text(const Range& range);
std::string to_text(const Step& step);

/// A line per step, with its number.
std::string to_text(const Schedule& schedule);

}  // namespace trireme::collectives
