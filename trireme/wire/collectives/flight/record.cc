#include "trireme/wire/collectives/flight/record.h"

#include <algorithm>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/wire/collectives/flight/layout.h"

namespace trireme::collectives {
namespace {

using std::chrono::microseconds;

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kCorruptData, "this is no flight record of a group: " + problem);
}

/// Text of another process: without what a terminal could take for orders.
std::string printable(const char (&text)[internal::kFlightNameBytes]) {
  std::string result(text, strnlen(text, sizeof text));
  for (char& letter : result) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return result;
}

/// An entry as a copy holds it.
struct RawEntry {
  std::int64_t sequence, count;
  std::uint64_t bytes;
  std::int64_t called_us, started_us, ended_us;
  std::uint64_t kinds;
  std::int32_t root, late_rank;
  std::uint32_t waited_us, state;
  std::int64_t check;
};
static_assert(sizeof(RawEntry) == sizeof(internal::FlightEntry));

struct RawLateness {
  std::uint64_t num_operations, waited_us;
};
static_assert(sizeof(RawLateness) == sizeof(internal::FlightLateness));

/// `last` is the enumeration's last one.
template <typename Kind>
std::optional<Kind> kind_at(std::uint64_t kinds, int position, Kind last) {
  const auto number = static_cast<std::uint8_t>(kinds >> (8 * position));
  if (number > static_cast<std::uint8_t>(last)) return std::nullopt;
  return static_cast<Kind>(number);
}

std::optional<microseconds> time_of(std::int64_t us) {
  if (us < 0) return std::nullopt;
  return microseconds(us);
}

/// Nothing where the entry is empty, being written, or not what a rank writes.
std::optional<FlightOperation> operation_of(const RawEntry& raw, std::uint32_t group_size) {
  const auto operation = kind_at(raw.kinds, 0, Operation::kAllToAll);
  const auto dtype = kind_at(raw.kinds, 1, Dtype::kC128);
  const auto reduce = kind_at(raw.kinds, 2, kernels::kLastReduceOp);
  const auto algorithm = kind_at(raw.kinds, 3, Algorithm::kTwoLevel);
  const bool is_whole = raw.sequence == raw.check && raw.sequence >= 0 && raw.called_us >= 0 &&
                        raw.state <= static_cast<std::uint32_t>(FlightState::kFailed);
  if (!is_whole || !operation || !dtype || !reduce || !algorithm) return std::nullopt;
  FlightOperation result{.sequence = raw.sequence,
                         .operation = *operation,
                         .dtype = *dtype,
                         .reduce = *reduce,
                         .algorithm = *algorithm,
                         .count = raw.count,
                         .bytes = raw.bytes,
                         .root = raw.root,
                         .state = static_cast<FlightState>(raw.state),
                         .called = microseconds(raw.called_us),
                         .started = time_of(raw.started_us),
                         .ended = time_of(raw.ended_us),
                         .late_rank = std::nullopt,
                         .waited = microseconds(raw.waited_us)};
  if (raw.late_rank >= 0 && static_cast<std::uint32_t>(raw.late_rank) < group_size) {
    result.late_rank = raw.late_rank;
  }
  return result;
}

internal::FlightHeader checked_header(std::span<const std::byte> bytes) {
  internal::FlightHeader header;
  if (bytes.size() < internal::kFlightHeaderBytes) {
    refuse(std::to_string(bytes.size()) + " bytes are less than its header");
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, internal::kFlightMagic, sizeof header.magic) != 0) {
    refuse("it begins with other bytes");
  }
  if (header.version != internal::kFlightVersion) {
    refuse("its format has version " + std::to_string(header.version) + ", expected " +
           std::to_string(internal::kFlightVersion) + "; use the trireme that the rank runs");
  }
  constexpr std::uint32_t kMostRanks = 1 << 20;
  if (header.entry_bytes != sizeof(internal::FlightEntry) ||
      header.capacity != internal::kFlightCapacity || header.group_size < 1 ||
      header.group_size > kMostRanks || bytes.size() != internal::flight_bytes(header.group_size)) {
    refuse("its sizes contradict each other");
  }
  return header;
}

template <typename Raw>
Raw raw_at(std::span<const std::byte> bytes, std::size_t offset) {
  Raw raw;
  std::memcpy(&raw, bytes.data() + offset, sizeof raw);
  return raw;
}

}  // namespace

FlightRecord parse_flight(std::span<const std::byte> bytes) {
  const internal::FlightHeader header = checked_header(bytes);
  FlightRecord record{.world_rank = header.world_rank,
                      .world_size = header.world_size,
                      .group_rank = header.group_rank,
                      .process = header.process,
                      .group = printable(header.group),
                      .host = printable(header.host),
                      .made = microseconds(header.start_unix_us),
                      .made_steady = microseconds(header.start_steady_us)};
  std::size_t offset = internal::kFlightHeaderBytes;
  for (std::uint32_t rank = 0; rank < header.group_size; ++rank, offset += sizeof(RawLateness)) {
    const auto raw = raw_at<RawLateness>(bytes, offset);
    const double times = static_cast<double>(raw.num_operations);
    const double mean_us = times > 0 ? static_cast<double>(raw.waited_us) / times : 0;
    record.lateness.push_back({static_cast<std::int64_t>(raw.num_operations),
                               std::chrono::duration<double, std::micro>(mean_us)});
  }
  for (std::uint32_t i = 0; i < header.capacity; ++i, offset += sizeof(RawEntry)) {
    const auto operation = operation_of(raw_at<RawEntry>(bytes, offset), header.group_size);
    if (operation) record.operations.push_back(*operation);
  }
  std::ranges::sort(record.operations, {}, &FlightOperation::sequence);
  return record;
}

}  // namespace trireme::collectives
