#include "trireme/engine/train/fed_source.h"

#include <string>

#include "trireme/error.h"

namespace trireme::train {

void require_as_many(std::span<const std::uint64_t> samples) {
  for (std::size_t r = 1; r < samples.size(); ++r) {
    if (samples[r] == samples[0]) continue;
    throw Error(ErrorKind::kInvalidArgument,
                "the batch has " + std::to_string(samples[0]) + " samples on replica 0 and " +
                    std::to_string(samples[r]) + " on replica " + std::to_string(r) +
                    "; give each as many in every step");
  }
}

}  // namespace trireme::train
