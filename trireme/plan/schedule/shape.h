#pragma once

namespace trireme::schedule::internal {

/// Refuses fewer than one stage or microbatch with kInvalidArgument: what every generator asks.
void check_shape(int num_stages, int num_microbatches);

}  // namespace trireme::schedule::internal
