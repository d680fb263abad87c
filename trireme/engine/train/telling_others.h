#pragma once

#include <cstdint>
#include <functional>

#include "trireme/wire/collectives/world.h"

namespace trireme::train {

/// Does a rank's part of what all do together. Where it fails, the others are told, so that none
/// waits for this one, and the Error that leaves says rank and step.
void telling_others(const collectives::World& world, std::int64_t step,
                    const std::function<void()>& part);

}  // namespace trireme::train
