#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trireme/base/device.h"
#include "trireme/base/log.h"
#include "trireme/wire/c/trireme_wire.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/collectives/measure.h"
#include "trireme/wire/endpoint/watch.h"
#include "trireme/wire/endpoint/world.h"

namespace trireme::c {

/// Longer times are as good as none, and must not overflow.
inline constexpr std::int64_t kYearMs = std::int64_t{1000} * 3600 * 24 * 365;

inline std::chrono::milliseconds milliseconds_of(std::int64_t count) {
  return std::chrono::milliseconds(std::min(count, kYearMs));
}

/// What a world's handle, its groups and their works share: the last one frees it.
struct World {
  World(transport::Meeting meeting, transport::WorldOptions options)
      : deadline(options.deadline), ranks(std::move(meeting), std::move(options)) {
    measure();
  }

  /// For the groups of a generation; all ranks do it.
  void measure() { costs = collectives::measure_world_costs(ranks.endpoint(), deadline); }

  const std::chrono::milliseconds deadline;
  Logger logger{LogLevel::kOff};
  transport::World ranks;
  collectives::Costs costs;  ///< Of messages.
  bool has_left = false;
  std::mutex mutex;
  std::set<std::string> group_names;  ///< Of groups that are not freed; under the mutex.
};

/// A group under the name that it has taken in its world.
struct NamedGroup {
  /// stream   what the options say, where that is not null.
  NamedGroup(std::shared_ptr<World> of, std::vector<int> ranks, collectives::GroupOptions options,
             std::unique_ptr<Stream> stream);
  ~NamedGroup();
  NamedGroup(const NamedGroup&) = delete;
  NamedGroup& operator=(const NamedGroup&) = delete;

  const std::shared_ptr<World> world;  // shared with the world's handle and other groups
  const std::string name;
  const Device device;
  const std::unique_ptr<Stream> stream;  ///< Borrowed from the caller; may be null.
  std::optional<collectives::Group> group;
};

}  // namespace trireme::c

// The handles. A work's group stays until the work is freed: it may be asked who is missing.

struct TriremeStore {
  trireme::transport::StoreServer server;
};

struct TriremeWorld {
  std::shared_ptr<trireme::c::World> world;  // shared with its groups
};

struct TriremeGroup {
  std::shared_ptr<trireme::c::NamedGroup> named;  // shared with its works
};

struct TriremeWork {
  std::shared_ptr<trireme::c::NamedGroup> named;  // shared with the group's handle
  trireme::transport::WorkPtr work;
  std::string operation;
  std::vector<int> peers = {};                ///< World ranks; of a message.
  trireme::transport::RecvWorkPtr recv = {};  ///< The work, where it is a recv's.
};
