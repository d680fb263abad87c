#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trireme/wire/collectives/schedule/schedule.h"

namespace trireme::collectives {

/// Makes a schedule from steps in an order in which they could run one by one; what really must
/// wait for what is found from the memory that they read and write.
class ScheduleBuilder {
 public:
  /// Memory that no step has used.
  Range scratch(std::int64_t elements);

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
  void reduce(const Range& to, std::vector<Range> from);
  void copy(const Range& to, const Range& from);

  Schedule take() { return std::move(schedule_); }

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

  Schedule schedule_;
  std::map<Place, Cells> places_;
};

/// Elements [begin, end) of `range`, counted from its own begin.
Range part_of(const Range& range, std::int64_t begin, std::int64_t end);

/// `range` in pieces of `segment` elements, the last one shorter. No empty ones.
std::vector<Range> segments_of(const Range& range, std::int64_t segment);

}  // namespace trireme::collectives
