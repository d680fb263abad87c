#pragma once

#include "trireme/engine/parameters/store.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::data_parallel {

/// The group's next operation carries a hash of the values held here: replicas whose values differ
/// are named on all ranks, by kCorruptData (Group::attach_hash).
///
/// Cost  the values are read once, at the speed of memory.
void attach_value_hashes(const parameters::ParameterStore& store, collectives::Group& group);

}  // namespace trireme::data_parallel
