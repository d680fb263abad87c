#pragma once

#include <map>

#include "trireme/base/descriptor.h"
#include "trireme/command/launch/line_writer.h"

namespace trireme::launch {

/// The captured outputs of ranks, passed on line by line: `[2] text` to this process's standard
/// output or error. Caller-synchronised.
class RankOutputs {
 public:
  void add(int rank, Descriptor output, Descriptor errors);

  /// Passes on a piece of what has come; closes what has ended.
  void read(int rank, bool is_error);

  /// Passes on all that has come of a rank that has ended. What it has started may write on.
  void drain(int rank);

  /// Passes on all that has come, and last lines without an end.
  void finish();

 private:
  struct Stream {
    Descriptor pipe;
    LineWriter writer;
  };
  struct Streams {
    Stream output;
    Stream errors;
  };

  static bool read_some(Stream& stream);

  std::map<int, Streams> streams_;
};

}  // namespace trireme::launch
