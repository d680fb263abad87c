#pragma once

#include <exception>

#include "trireme/engine/program/torch_failure.h"
#include "trireme/error.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::session {

/// Runs `body`, after which a failure is every rank's.
template <typename Body>
auto on_all_ranks(const collectives::World& world, const Body& body) {
  try {
    return body();
  } catch (const std::exception& failure) {
    Error error = program::error_of(failure);
    world.endpoint.poison(error.add({.rank = world.rank()}));
    throw error;
  }
}

}  // namespace trireme::session
