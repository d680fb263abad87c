#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/wire/collectives/description.h"

namespace trireme::collectives {

enum class FlightState : std::uint8_t {
  kCalled,   ///< In the queue.
  kStarted,  ///< Under way.
  kEnded,
  kFailed,
};

/// `called`, `started`, `ended`, `failed`.
std::string_view to_text(FlightState state);

/// One operation of a group. Times since the group was made.
struct FlightOperation {
  std::int64_t sequence = 0;
  Collective operation = Collective::kBarrier;
  Dtype dtype = Dtype::kU8;
  kernels::ReduceOp reduce = kernels::ReduceOp::kSum;
  Algorithm algorithm = Algorithm::kTwoHop;  ///< Over the network only.
  std::int64_t count = 0;
  std::uint64_t bytes = 0;  ///< Of this rank's buffer.
  int root = 0;
  FlightState state = FlightState::kCalled;
  std::chrono::microseconds called{0};
  std::optional<std::chrono::microseconds> started;
  std::optional<std::chrono::microseconds> ended;
  std::optional<int>
      late_rank;  ///< Group rank that it waited for longest; may be this one: nobody.
  std::chrono::microseconds waited{0};  ///< For that rank.
};

/// How often a group rank was the one that this rank waited for longest, and how long on average.
struct Lateness {
  std::int64_t num_operations = 0;
  std::chrono::duration<double, std::micro> mean{0};
};

/// What a rank has written of a group's last operations.
struct FlightRecord {
  int world_rank = 0;
  int world_size = 1;
  int group_rank = 0;
  int process = 0;
  std::string group;
  std::string host;
  std::chrono::microseconds made{0};         ///< Since 1970.
  std::chrono::microseconds made_steady{0};  ///< By the host's steady clock.
  std::vector<Lateness> lateness;            ///< By group rank.
  std::vector<FlightOperation>
      operations;  ///< Oldest first; those that are being written are left out.
};

/// Reads a copy of a record's memory. kCorruptData, saying why, where it is none; any bytes are
/// safe.
FlightRecord parse_flight(std::span<const std::byte> bytes);

/// One line: `12 all_reduce f32 x 1000 sum: ended, called 15 us, ...`.
std::string to_text(const FlightOperation& operation);

/// A table: whose it is, the last `most` operations, and who is late how often.
std::string to_text(const FlightRecord& record, std::size_t most = 32);

/// The records of all groups of another process of this host, by group name.
///
/// Errors   kInvalidArgument where there is no such process, or it has no groups; kUnavailable where
///          the system does not let this one look; kCorruptData.
std::vector<FlightRecord> read_flights(int process);

}  // namespace trireme::collectives
