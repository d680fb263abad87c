#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trireme::recipes::ssd {

/// What a step of a batch takes, measured or predicted.
struct BatchTime {
  std::int64_t batch = 0;
  double step_seconds = 0;
};

/// A training until it has learned what SSD should.
struct BatchChoice {
  std::int64_t batch = 0;
  double epochs = 0;
  std::int64_t steps = 0;
  double seconds = 0;
};

/// Epochs that a batch of this size trains, on COCO to an AP of 23 %: 50 up to 1,024 images, then those of NVIDIA's submissions
/// to MLPerf v1.0 (2,048: 65; 3,072: 75; 4,096: 90), by straight lines between them.
///
/// Errors   kInvalidArgument for a batch below 1 or beyond 4,096, of which nobody has said anything.
double epochs_of(std::int64_t batch);

/// How long trainings with these batches take: epochs times the steps of one, the last of which may have fewer images. The
/// shortest first; of equal ones the smaller batch.
///
/// num_images   of an epoch.
/// Errors       kInvalidArgument without batches, for numbers below 1 and times not above 0; those of epochs_of.
std::vector<BatchChoice> compare_batches(std::int64_t num_images, std::span<const BatchTime> times);

/// From `1024=310,2048=560.5`: batches and milliseconds of their steps. kInvalidArgument for another text.
std::vector<BatchTime> parse_batch_times(const std::string& text);

/// As a table for people.
std::string to_table(std::int64_t num_images, std::span<const BatchChoice> choices);

}  // namespace trireme::recipes::ssd
