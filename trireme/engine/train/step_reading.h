#pragma once

#include <cstdint>
#include <optional>

namespace trireme::train {

/// What reading samples took on a rank, from one step to the next.
struct StepReading {
  double waited_seconds = 0;  ///< Those in which the step waited for microbatches.
  double read_seconds = 0;    ///< Those in which microbatches were read, ahead of their steps.
  double decode_seconds = 0;  ///< Of all threads that read, where the source says it ("decode").
  std::int64_t bytes = 0;     ///< Read of files, likewise.
  std::int64_t batches_read = 0;   ///< Microbatches that were read,
  std::int64_t batches_taken = 0;  ///< and that the step took.
  int threads = 0;                 ///< That read, when the step had ended; 0 where none does.
  /// How many microbatches were ready when one was asked for, on average; nothing where none was.
  std::optional<double> batches_ready;
};

}  // namespace trireme::train
