#include "trireme/data/range.h"

#include <algorithm>
#include <string>

#include "trireme/error.h"

namespace trireme::data {
namespace {

void require(bool condition, const std::string& problem) {
  if (!condition) throw Error(ErrorKind::kInvalidArgument, problem);
}

}  // namespace

IndexRange microbatch_range(const BatchNumbers& batch, std::int64_t position, std::int64_t m) {
  require(
      batch.global_batch > 0 && batch.microbatch > 0 && batch.global_batch % batch.microbatch == 0,
      "a microbatch of " + std::to_string(batch.microbatch) +
          " samples does not divide the global batch of " + std::to_string(batch.global_batch));
  require(position >= 0, "a step cannot begin at sample " + std::to_string(position));
  const std::int64_t count = batch.global_batch / batch.microbatch;
  require(m >= 0 && m < count, "there is no microbatch " + std::to_string(m) + " among the " +
                                   std::to_string(count) + " of a step");
  const std::int64_t begin = position + m * batch.microbatch;
  return {begin, begin + batch.microbatch};
}

std::int64_t num_evaluation_microbatches(std::int64_t num_samples, std::int64_t microbatch) {
  require(num_samples >= 0 && microbatch > 0, "cannot evaluate " + std::to_string(num_samples) +
                                                  " samples in microbatches of " +
                                                  std::to_string(microbatch));
  return num_samples / microbatch + (num_samples % microbatch != 0 ? 1 : 0);
}

IndexRange evaluation_range(std::int64_t num_samples, std::int64_t microbatch, std::int64_t m) {
  const std::int64_t count = num_evaluation_microbatches(num_samples, microbatch);
  require(m >= 0 && m < count, "there is no microbatch " + std::to_string(m) + " among the " +
                                   std::to_string(count) + " of the evaluation");
  return {m * microbatch, std::min(num_samples, (m + 1) * microbatch)};
}

}  // namespace trireme::data
