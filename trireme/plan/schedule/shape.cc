#include "trireme/plan/schedule/shape.h"

#include <string>

#include "trireme/error.h"

namespace trireme::schedule::internal {

void check_shape(int num_stages, int num_microbatches) {
  if (num_stages >= 1 && num_microbatches >= 1) return;
  throw Error(ErrorKind::kInvalidArgument,
              "a schedule needs at least one stage and one microbatch, got " +
                  std::to_string(num_stages) + " and " + std::to_string(num_microbatches));
}

}  // namespace trireme::schedule::internal
