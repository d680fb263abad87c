#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/log.h"
#include "trireme/wire/collectives/description.h"
#include "trireme/wire/collectives/flight/recorder.h"
#include "trireme/wire/collectives/tuner.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::collectives {

/// kTimeout: waited for `ranks` of the world until the deadline of an operation.
Error late_error(const std::vector<int>& ranks, std::chrono::milliseconds deadline);

/// A hash of `hash` and `value`.
std::uint64_t mixed(std::uint64_t hash, std::int64_t value);

/// Tells a group's messages apart from those of others, beside it and before it: below 2^60.
///
/// use   groups of that id and those ranks before this one, which all members count alike.
std::uint64_t message_id(std::uint64_t id, const std::vector<int>& ranks, std::uint64_t use);

/// What members send each other: each has its own tag.
enum class Use : std::uint8_t {
  kOperation,
  kArena,   ///< Shared memory in which they meet.
  kRegion,  ///< Shared memory for buffers.
  kRefusal,
};

/// The ranks of a group, and this one among them. Immutable.
struct Members {
  transport::Endpoint& endpoint;
  std::vector<int> ranks;  ///< World ranks by group rank.
  int group_rank;
  std::string name;
  std::uint64_t id;                    ///< Of its messages.
  std::chrono::milliseconds deadline;  ///< Of an operation.
  Order order = Order::kCanonical;
  std::optional<Algorithm> algorithm = {};  ///< Where it is eligible; else what costs least.
  Costs costs = {};
  int ranks_per_host = 1;  ///< As eligible.h has it.
  int num_reducers = 0;    ///< As GroupOptions has it.
  /// Of the group, shared with works that outlive it.
  std::shared_ptr<FlightRecorder> flight = nullptr;
  Logger logger{LogLevel::kOff};

  /// Says that the group has failed: its domain, where it has one, else the world.
  std::shared_ptr<transport::Failure> domain = nullptr;

  std::shared_ptr<transport::Failure> failure() const {
    return domain ? domain : endpoint.shared_failure();
  }

  /// Ends the group on all its ranks; the world where a rank is lost. When it returns, no message of
  /// the group is under way here but those that peers still read.
  void fail(const Error& error) const;

  /// The group has failed.
  void log_flight() const { log_last_operations(*flight, logger); }

  int size() const { return static_cast<int>(ranks.size()); }

  /// Apart from other groups' and other users'.
  transport::Tag tag(Use use) const { return first_tag(id) | static_cast<transport::Tag>(use); }

  /// Of the domain of a group with that id.
  static constexpr transport::Tag first_tag(std::uint64_t id) {
    constexpr transport::Tag kGroups = transport::Tag{1} << 63;
    return kGroups | id << 3;
  }

  /// Whether all of them can share memory with this rank.
  bool share_memory() const {
    for (const int rank : ranks) {
      if (rank != endpoint.rank() && !endpoint.local_peers().contains(rank)) return false;
    }
    return true;
  }
};

/// Throws, with the same text on all ranks: kInvalidArgument where the ranks are about to do
/// different things; where only their hashes differ, as Group::attach_hash says. descriptions: by
/// group rank, of one at least.
void check_same(const Members& members, const std::map<int, Description>& descriptions);

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
