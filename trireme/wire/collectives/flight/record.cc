#include "trireme/wire/collectives/flight/record.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "trireme/base/descriptor.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"
#include "trireme/wire/collectives/flight/layout.h"
#include "trireme/wire/collectives/flight/recorder.h"

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
  const auto operation = kind_at(raw.kinds, 0, Collective::kAllToAll);
  const auto dtype = kind_at(raw.kinds, 1, Dtype::kC128);
  const auto reduce = kind_at(raw.kinds, 2, kernels::kLastReduceOp);
  const auto algorithm = kind_at(raw.kinds, 3, static_cast<Algorithm>(kNumAlgorithms - 1));
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

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

[[noreturn]] void refuse_to_look(int process, const std::string& reason) {
  throw Error(ErrorKind::kUnavailable,
              "the system does not let this process look into process " + std::to_string(process) +
                  ": " + reason + "; run it as the same user, in the same container, or as root");
}

bool is_flight(const fs::path& link) {
  std::error_code unread;
  return fs::read_symlink(link, unread).string().starts_with(std::string("/memfd:") + kFlightFile);
}

/// Memory of another process, mapped to be read.
class Mapping {
 public:
  Mapping(const Descriptor& file, std::size_t bytes)
      : begin_(::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number(), 0)), bytes_(bytes) {
    if (begin_ == MAP_FAILED) throw_system_error("map a flight record", errno);
  }
  ~Mapping() { ::munmap(begin_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(begin_), bytes_}; }

 private:
  void* begin_;
  std::size_t bytes_;
};

/// A copy of the record; empty where the process has closed it meanwhile.
std::vector<std::byte> read_copy(const fs::path& path, int process) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open() && errno == ENOENT) return {};
  if (!file.is_open()) refuse_to_look(process, std::generic_category().message(errno));
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) throw_system_error("look at", path, errno);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  // What could shrink while it is read would end this process by SIGBUS.
  const int seals = ::fcntl(file.number(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || bytes == 0 || bytes % 8 != 0 ||
      bytes > kMostBytes) {
    throw Error(ErrorKind::kCorruptData, "process " + std::to_string(process) + " has " +
                                             std::to_string(bytes) +
                                             " bytes under the name of a "
                                             "flight record that are none");
  }
  const Mapping mapping(file, bytes);
  return internal::copy_flight(mapping.bytes());
}

}  // namespace

std::vector<FlightRecord> read_flights(int process) {
  const fs::path folder = "/proc/" + std::to_string(process);
  std::error_code failed;
  if (process < 1 || !fs::exists(folder, failed)) {
    throw Error(ErrorKind::kInvalidArgument,
                "there is no process " + std::to_string(process) + " on this host");
  }
  fs::directory_iterator entries(folder / "fd", failed);
  if (failed) refuse_to_look(process, failed.message());
  std::vector<FlightRecord> records;
  for (const fs::directory_entry& entry : entries) {
    if (!is_flight(entry.path())) continue;
    const std::vector<std::byte> copy = read_copy(entry.path(), process);
    if (!copy.empty()) records.push_back(parse_flight(copy));
  }
  if (records.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "process " + std::to_string(process) +
                                                 " is no rank: it has no groups at the moment");
  }
  std::ranges::sort(records, {}, &FlightRecord::group);
  return records;
}

namespace {

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// `all_reduce of 1000 f32 by sum`, `broadcast of 12 bytes from 1`.
std::string what_of(const FlightOperation& operation) {
  std::string text(to_text(operation.operation));
  if (operation.operation == Collective::kBarrier) return text;
  if (reduces(operation.operation)) {
    text += " of " + std::to_string(operation.count) + " " + std::string(to_text(operation.dtype)) +
            " by " + std::string(kernels::to_text(operation.reduce));
  } else {
    text += " of " + std::to_string(operation.bytes) + " bytes";
  }
  if (has_root(operation.operation)) text += ", root " + std::to_string(operation.root);
  return text;
}

std::string time_text(const std::optional<std::chrono::microseconds>& time) {
  return time ? number("%.0f", static_cast<double>(time->count())) : "-";
}

std::string late_text(const FlightOperation& operation) {
  if (!operation.late_rank) return "-";
  return std::to_string(*operation.late_rank) + " (" + std::to_string(operation.waited.count()) +
         " us)";
}

std::string row(const std::string& sequence, const std::string& state, const std::string& called,
                const std::string& started, const std::string& ended, const std::string& late,
                const std::string& what) {
  char text[512];
  std::snprintf(text, sizeof text, "%8s  %-7s  %12s  %12s  %12s  %16s  %s\n", sequence.c_str(),
                state.c_str(), called.c_str(), started.c_str(), ended.c_str(), late.c_str(),
                what.c_str());
  return text;
}

}  // namespace

std::string_view to_text(FlightState state) {
  switch (state) {
    case FlightState::kCalled:
      return "called";
    case FlightState::kStarted:
      return "started";
    case FlightState::kEnded:
      return "ended";
    case FlightState::kFailed:
      return "failed";
  }
  return "unknown";
}

std::string to_text(const FlightOperation& operation) {
  std::string text = "operation " + std::to_string(operation.sequence) + ": " + what_of(operation) +
                     ": " + std::string(to_text(operation.state)) + "; called " +
                     time_text(operation.called) + " us, started " + time_text(operation.started) +
                     " us, ended " + time_text(operation.ended) + " us";
  if (operation.late_rank) text += "; waited longest for " + late_text(operation);
  return text;
}

std::string to_text(const FlightRecord& record, std::size_t most) {
  std::string text = "rank " + std::to_string(record.world_rank) + " of " +
                     std::to_string(record.world_size) + " on " + record.host + ", process " +
                     std::to_string(record.process) + ", group '" + record.group +
                     "': group rank " + std::to_string(record.group_rank) + " of " +
                     std::to_string(record.lateness.size()) + "\n";
  text += row("number", "state", "called us", "started us", "ended us", "waited for", "operation");
  const std::size_t shown = std::min(most, record.operations.size());
  for (std::size_t i = record.operations.size() - shown; i < record.operations.size(); ++i) {
    const FlightOperation& operation = record.operations[i];
    text += row(std::to_string(operation.sequence), std::string(to_text(operation.state)),
                time_text(operation.called), time_text(operation.started),
                time_text(operation.ended), late_text(operation), what_of(operation));
  }
  if (record.operations.empty()) text += "  no operation yet\n";
  for (std::size_t rank = 0; rank < record.lateness.size(); ++rank) {
    const Lateness& lateness = record.lateness[rank];
    if (lateness.num_operations == 0) continue;
    text += "group rank " + std::to_string(rank) + " was the last of " +
            std::to_string(lateness.num_operations) + " operations, " +
            number("%.1f", lateness.mean.count()) + " us on average\n";
  }
  return text;
}

}  // namespace trireme::collectives
