#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trireme::collectives::internal {

/// The memory of a flight record, format kFlightVersion:
///
///     page of the header | per group rank: FlightLateness | kFlightCapacity x FlightEntry
///
/// Operation s has entry s mod kFlightCapacity. One process writes; any number read, at any time,
/// from copies.
inline constexpr char kFlightMagic[8] = {'T', 'R', 'M', 'F', 'L', 'G', 'H', 'T'};
inline constexpr std::uint32_t kFlightVersion = 1;
inline constexpr std::uint32_t kFlightCapacity = 1024;
inline constexpr std::size_t kFlightHeaderBytes = 4096;
inline constexpr std::size_t kFlightNameBytes = 128;

/// Constant once the record is made.
struct FlightHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t entry_bytes;
  std::uint32_t capacity;
  std::int32_t world_rank;
  std::int32_t world_size;
  std::int32_t group_rank;
  std::uint32_t group_size;
  std::int32_t process;
  std::int64_t start_unix_us;  ///< When it was made: what the entries' times count from.
  std::int64_t start_steady_us;
  char group[kFlightNameBytes];  ///< Zeros behind the text.
  char host[kFlightNameBytes];
};

/// Of the waits for one group rank.
struct FlightLateness {
  std::atomic<std::uint64_t> num_operations;  ///< Whose longest wait was for it.
  std::atomic<std::uint64_t> waited_us;
};

/// An entry is whole where `sequence` equals `check`. The writer spoils both, writes the rest, then
/// sets both; a reader copies from the front to the back (`copy_flight`). So it sees a sequence
/// only where what follows is of it or later, and an equal check only where nothing was later.
struct FlightEntry {
  std::atomic<std::int64_t> sequence;
  std::atomic<std::int64_t> count;
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::int64_t> called_us;
  std::atomic<std::int64_t> started_us;
  std::atomic<std::int64_t> ended_us;
  std::atomic<std::uint64_t> kinds;  ///< Operation, dtype, reduction, algorithm: a byte each.
  std::atomic<std::int32_t> root;
  std::atomic<std::int32_t> late_rank;  ///< Of the group; below 0: not known.
  std::atomic<std::uint32_t> waited_us;
  std::atomic<std::uint32_t> state;
  std::atomic<std::int64_t> check;
};

static_assert(sizeof(FlightHeader) <= kFlightHeaderBytes);
static_assert(sizeof(FlightEntry) == 80);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

constexpr std::size_t flight_bytes(std::size_t group_size) {
  return kFlightHeaderBytes + group_size * sizeof(FlightLateness) +
         kFlightCapacity * sizeof(FlightEntry);
}

/// A copy of a record while another thread or process may write it.
///
/// memory   of whole 8-byte words, aligned to them.
std::vector<std::byte> copy_flight(std::span<std::byte> memory);

}  // namespace trireme::collectives::internal
