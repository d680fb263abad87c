#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trireme::collectives {

/// Memory that a rank's steps work on.
enum class Place : std::uint8_t {
  kData,     ///< The user's buffer.
  kInput,    ///< What the user gives to be read only: all_to_all.
  kScratch,  ///< The library's own, with any content at the start.
  kPartial,  ///< Likewise, of partial results, which may be wider than elements (kernels/reduce/parts.h).
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
///
/// A reduce into partial results combines the elements of some neighbouring ranks, one of partial
/// results makes of those of all ranks what is wanted; any other combines elements to elements.
struct Step {
  StepKind kind = StepKind::kSend;
  int peer = -1;               ///< Group rank, of a send or recv.
  Range target;                ///< What is written; not of a send.
  std::vector<Range> sources;  ///< What is read, one size; of a reduce in the order of THE tree.
  int first_rank = 0;          ///< Of a reduce of ranks' elements: whose the first source is.
  std::vector<int> after;      ///< Earlier steps that must have ended before this one begins.

  bool operator==(const Step&) const = default;
};

/// What one rank of a group does in an operation.
///
/// A step begins once those that it is `after` have ended. A send and its recv are the k-th between
/// their ranks in that direction, on both sides; they begin in this order, and end together at the
/// earliest when both have begun. So nothing depends on time, and any number of steps is under way.
struct CollectiveSchedule {
  std::vector<Step> steps;
  std::int64_t scratch_elements = 0;
  std::int64_t partial_elements = 0;

  bool operator==(const CollectiveSchedule&) const = default;
};

std::string to_text(const Range& range);
std::string to_text(const Step& step);

/// A line per step, with its number.
std::string to_text(const CollectiveSchedule& schedule);

/// Makes a schedule from steps in an order in which they could run one by one; what really must
/// wait for what is found from the memory that they read and write.
class ScheduleBuilder {
 public:
  /// Memory that no step has used.
  Range scratch(std::int64_t elements);
  Range partial(std::int64_t elements);

  // Steps on empty ranges are left out.
  void send(int peer, const Range& from);

  /// To a peer after the other: the first piece for one begins when the last for the one before has
  /// ended. Where all ranks begin with the next one, each gets from one at a time, and no link has
  /// to hold the queues of many.
  struct Parcel {
    int peer;
    std::vector<Range> pieces;
  };
  void send_in_turn(const std::vector<Parcel>& parcels);
  void recv(int peer, const Range& to);
  void reduce(const Range& to, std::vector<Range> from, int first_rank = 0);
  void copy(const Range& to, const Range& from);

  CollectiveSchedule take() { return std::move(schedule_); }

 private:
  /// Elements from a key of the map to `end`, which the same steps have used.
  struct Cell {
    std::int64_t end;
    int writer;                ///< The last; -1: none.
    std::vector<int> readers;  ///< Since then.
  };
  using Cells = std::map<std::int64_t, Cell>;

  void add(Step step);
  void split(Cells& cells, std::int64_t at);
  void read(const Range& range, Step& step);
  void write(const Range& range, Step& step);
  int next() const { return static_cast<int>(schedule_.steps.size()); }

  CollectiveSchedule schedule_;
  std::map<Place, Cells> places_;
};

/// Elements [begin, end) of `range`, counted from its own begin.
Range part_of(const Range& range, std::int64_t begin, std::int64_t end);

/// `range` in pieces of `segment` elements, the last one shorter. No empty ones.
std::vector<Range> segments_of(const Range& range, std::int64_t segment);

}  // namespace trireme::collectives
