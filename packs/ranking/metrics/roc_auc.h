#pragma once

#include <cstdint>
#include <span>

#include "trireme/kernels/spread.h"

namespace trireme::ranking {

/// Sums of counts over the ranks that hold parts of one evaluation. All call with the same sizes,
/// in the same order. Of the collectives' groups: GroupCounts (group_counts.h).
class CountGroup {
 public:
  virtual ~CountGroup() = default;
  virtual void sum(std::span<std::uint64_t> counts) = 0;
};

/// Area under the ROC curve: the share of pairs of a positive and a negative in which the positive
/// has the higher score, where a tie counts one half:
///
///     (2 #{p > n} + #{p = n}) / (2 P N)
///
/// Both are counted exactly, so the result is off by the rounding of two counts and one division.
/// -0 ties with 0; infinities are scores like others.
///
/// scores   destroyed: they are sorted in place.
/// labels   as many: 1 positive, 0 negative.
/// Errors   kInvalidArgument, naming the index of a score that is NaN or of a label that is neither
///          0 nor 1; where a class is missing; beyond 2^32 - 1 scores.
/// Cost     linear where scores are spread evenly by value over 1,024 steps up to the largest
///          magnitude, each then sorted within the cache; never more than a radix sort of 4 passes.
///          Memory for the scores once more. Threads change nothing but the time.
/// Source   Hanley and McNeil, "The meaning and use of the area under a ROC curve", 1982.
double roc_auc(std::span<float> scores, std::span<const std::uint8_t> labels,
               const kernels::Spread& spread = kernels::on_caller);

/// The same over the scores of all ranks of a group, on every rank: counts of coarse buckets are
/// added up, and only buckets in which both classes meet are cut further, until a bucket is one
/// score.
///
/// Errors   also kInvalidArgument where another rank's input is bad. A rank may have no scores, or
///          one class only.
/// Cost     sums of at most 512 KiB, one after the other: 32 counts for each bucket that holds both
///          classes, on each of 5 levels, so more than the scores themselves where most of
///          them differ.
double roc_auc(std::span<float> scores, std::span<const std::uint8_t> labels, CountGroup& group,
               const kernels::Spread& spread = kernels::on_caller);

}  // namespace trireme::ranking
