#include "trireme/engine/train/telling_others.h"

#include <exception>

#include "trireme/engine/program/torch_failure.h"
#include "trireme/error.h"

namespace trireme::train {

void telling_others(const collectives::World& world, std::int64_t step,
                    const std::function<void()>& part) {
  try {
    part();
  } catch (const std::exception& failure) {
    Error error = program::error_of(failure);
    error.add({.rank = world.rank(), .step = step});
    world.endpoint.poison(error);
    throw error;
  }
}

}  // namespace trireme::train
