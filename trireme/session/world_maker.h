#pragma once

#include "trireme/base/log.h"
#include "trireme/collectives.h"
#include "trireme/launch/connected_world.h"

namespace trireme::session {

struct WorldMaker {
  /// The public form of what a launcher has connected, which outlives it; null: a world of one rank.
  static World make(launch::ConnectedWorld* ranks, const WorldOptions& options, LogLevel level);
};

}  // namespace trireme::session
