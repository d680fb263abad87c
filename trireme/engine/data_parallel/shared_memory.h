#pragma once

#include "trireme/engine/parameters/store.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::data_parallel {

/// Flat buffers in the group's own memory, where its sums need no copies. They count as memory of
/// tensors (memory_use), and end before the group.
///
/// All ranks of the group make the same buffers in the same order.
parameters::FlatMemory memory_of(collectives::Group& group);

}  // namespace trireme::data_parallel
