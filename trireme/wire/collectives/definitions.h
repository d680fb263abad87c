#pragma once

#include <chrono>
#include <span>

#include "trireme/wire/collectives/members.h"

namespace trireme::collectives {

/// Ranks that share groups make them in the same order, with the same ids, names and ranks. Each
/// tells the others of a group as it makes it; who waits for long compares.

/// After that long.
inline constexpr std::chrono::seconds kDefinitionPatience{2};

/// Tells the other members that this rank has made the group.
void tell_definition(const Members& members);

/// Of ranks of the world for which the group waits. Throws kInvalidArgument, naming both groups,
/// where one of them has made another group with this rank in place of it.
void check_definitions(const Members& members, std::span<const int> awaited);

}  // namespace trireme::collectives
