#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/plan/analytic/predict.h"

namespace trireme::analytic {

/// What is asked of a search.
struct LayoutSearch {
  std::int64_t num_hosts = 1;
  std::int64_t global_batch = 1;
  std::int64_t seq_len = 0;   ///< 0: the model's.
  std::int64_t replicas = 0;  ///< 0: any number.
  std::int64_t microbatch =
      0;  ///< Samples of one; 0: powers of two up to 64, and all of a replica.
  MatrixType type = MatrixType::kBf16;
  double memory_part =
      0.92;  ///< Of a device's memory that a layout may take; the rest is the driver's and lost between buffers.
  std::size_t most = 10;  ///< Layouts that are returned.
};

struct FoundLayout {
  TrainLayout layout;
  AnalyticStep step;
};

struct LayoutsFound {
  std::vector<FoundLayout> best;  ///< Fastest first; of equally fast ones the one with less memory.
  std::vector<FoundLayout>
      front;                     ///< Those that none beats in both step and memory, fastest first.
  std::int64_t num_tried = 0;    ///< Layouts that the model, the devices and the batch allow.
  std::int64_t num_fitting = 0;  ///< Of those, with enough memory.
};

/// Tries tensor groups within a host, pipelines, up to eight parts of a rank, some of them a block longer where blocks do not
/// divide, context groups of up to four ranks for microbatches of one sample, microbatches, recomputation, sharding.
///
/// Errors   kInvalidArgument, saying what to change, where no layout is possible, a number is above 2^20, or the devices have
///          not the type; kResourceExhausted where none fits, naming the least memory that was needed.
LayoutsFound search_layouts(const ModelShape& shape, const Machine& machine,
                            const AchievedByDevice& achieved, const LayoutSearch& search);

/// The largest part of a step beside compute, or compute: what limits it.
std::string limit_of(const AnalyticStep& step);

/// A layout that was published, with what it took.
struct PublishedLayout {
  std::string model;
  std::string machine;
  std::int64_t num_hosts = 0;
  TrainLayout
      layout;         ///< Tensor 0 where the split is not published, data 0 where replicas are not.
  double step_s = 0;  ///< 0: not published.
  double samples_per_s = 0;
  double days = 0;
  std::string source;
};

const std::vector<PublishedLayout>& published_layouts();

/// Those of the model, on this machine with so many hosts first, then others.
std::vector<PublishedLayout> published_for(const std::string& model, const std::string& machine,
                                           std::int64_t num_hosts);

}  // namespace trireme::analytic
