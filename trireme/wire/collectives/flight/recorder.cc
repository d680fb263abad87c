#include "trireme/wire/collectives/flight/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "trireme/error.h"
#include "trireme/wire/collectives/flight/record.h"

namespace trireme::collectives {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

constexpr auto kRelaxed = std::memory_order_relaxed;

void copy_text(const std::string& text, char (&to)[internal::kFlightNameBytes]) {
  std::memcpy(to, text.data(), std::min(text.size(), sizeof to - 1));
}

std::uint64_t kinds_of(const Description& description) {
  return static_cast<std::uint64_t>(description.operation) |
         static_cast<std::uint64_t>(description.dtype) << 8 |
         static_cast<std::uint64_t>(description.reduce) << 16 |
         static_cast<std::uint64_t>(description.algorithm) << 24;
}

/// One writer: no read-modify-write is needed.
void add(std::atomic<std::uint64_t>& number, std::uint64_t by) {
  number.store(number.load(kRelaxed) + by, kRelaxed);
}

}  // namespace

namespace internal {

std::vector<std::byte> copy_flight(std::span<std::byte> memory) {
  std::vector<std::byte> copy(memory.size());
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= memory.size();
       at += sizeof(std::uint64_t)) {
    auto& word = *reinterpret_cast<std::uint64_t*>(memory.data() + at);
    const std::uint64_t value = std::atomic_ref(word).load(std::memory_order_acquire);
    std::memcpy(copy.data() + at, &value, sizeof value);
  }
  return copy;
}

}  // namespace internal

namespace {

internal::FlightHeader header_of(const FlightOwner& owner, FlightRecorder::Time start) {
  internal::FlightHeader header{};
  std::memcpy(header.magic, internal::kFlightMagic, sizeof header.magic);
  header.version = internal::kFlightVersion;
  header.entry_bytes = sizeof(internal::FlightEntry);
  header.capacity = internal::kFlightCapacity;
  header.world_rank = owner.world_rank;
  header.world_size = owner.world_size;
  header.group_rank = owner.group_rank;
  header.group_size = static_cast<std::uint32_t>(owner.group_size);
  header.process = ::getpid();
  const auto unix_time = std::chrono::system_clock::now().time_since_epoch();
  header.start_unix_us = duration_cast<microseconds>(unix_time).count();
  header.start_steady_us = duration_cast<microseconds>(start.time_since_epoch()).count();
  copy_text(owner.group, header.group);
  char host[internal::kFlightNameBytes] = "";
  ::gethostname(host, sizeof host - 1);
  copy_text(host, header.host);
  return header;
}

}  // namespace

FlightRecorder::FlightRecorder(const FlightOwner& owner)
    : start_(std::chrono::steady_clock::now()), group_size_(owner.group_size) {
  const std::size_t size = internal::flight_bytes(static_cast<std::size_t>(group_size_));
  try {
    shared_ = transport::SharedMemory::create(kFlightFile, size);
    memory_ = shared_.bytes();
  } catch (const Error&) {  // a group works without: `trireme doctor` says that memfd is refused
    own_.resize((size + 7) / 8);
    memory_ = std::as_writable_bytes(std::span(own_)).first(size);
  }
  std::byte* at = memory_.data() + internal::kFlightHeaderBytes;
  lateness_ = new (at) internal::FlightLateness[static_cast<std::size_t>(group_size_)]();
  at += static_cast<std::size_t>(group_size_) * sizeof(internal::FlightLateness);
  entries_ = new (at) internal::FlightEntry[internal::kFlightCapacity]();
  for (std::uint32_t i = 0; i < internal::kFlightCapacity; ++i)
    entries_[i].check.store(-1, kRelaxed);
  const internal::FlightHeader header = header_of(owner, start_);
  std::memcpy(memory_.data(), &header, sizeof header);
}

internal::FlightEntry& FlightRecorder::entry(std::int64_t sequence) const {
  return entries_[static_cast<std::uint64_t>(sequence) % internal::kFlightCapacity];
}

bool FlightRecorder::is_current(std::int64_t sequence) const {
  return entry(sequence).check.load(kRelaxed) == sequence;
}

std::int64_t FlightRecorder::since_start(Time time) const {
  return duration_cast<microseconds>(time - start_).count();
}

void FlightRecorder::call(std::int64_t sequence, const Request& request, Time time) {
  internal::FlightEntry& entry = this->entry(sequence);
  entry.check.store(-1, kRelaxed);
  entry.sequence.store(-1, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);  // spoilt before anything is written
  entry.count.store(request.description.count, kRelaxed);
  entry.bytes.store(request.bytes(), kRelaxed);
  entry.called_us.store(since_start(time), kRelaxed);
  entry.started_us.store(-1, kRelaxed);
  entry.ended_us.store(-1, kRelaxed);
  entry.kinds.store(kinds_of(request.description), kRelaxed);
  entry.root.store(request.description.root, kRelaxed);
  entry.late_rank.store(-1, kRelaxed);
  entry.waited_us.store(0, kRelaxed);
  entry.state.store(static_cast<std::uint32_t>(FlightState::kCalled), kRelaxed);
  entry.sequence.store(sequence, std::memory_order_release);
  entry.check.store(sequence, std::memory_order_release);
}

void FlightRecorder::start(std::int64_t sequence, Time time) {
  if (!is_current(sequence)) return;
  internal::FlightEntry& entry = this->entry(sequence);
  entry.started_us.store(since_start(time), kRelaxed);
  entry.state.store(static_cast<std::uint32_t>(FlightState::kStarted), std::memory_order_release);
}

void FlightRecorder::end(std::int64_t sequence, Time time, const LongestWait& wait) {
  count(wait);
  if (!is_current(sequence)) return;
  internal::FlightEntry& entry = this->entry(sequence);
  entry.ended_us.store(since_start(time), kRelaxed);
  entry.late_rank.store(wait.group_rank, kRelaxed);
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  entry.waited_us.store(static_cast<std::uint32_t>(std::min(wait.time.count(), kMost)), kRelaxed);
  entry.state.store(static_cast<std::uint32_t>(FlightState::kEnded), std::memory_order_release);
}

void FlightRecorder::count(const LongestWait& wait) {
  if (wait.group_rank < 0 || wait.group_rank >= group_size_) return;
  internal::FlightLateness& lateness = lateness_[wait.group_rank];
  add(lateness.num_operations, 1);
  add(lateness.waited_us, static_cast<std::uint64_t>(wait.time.count()));
}

void FlightRecorder::fail(std::int64_t sequence, Time time) {
  if (!is_current(sequence)) return;
  internal::FlightEntry& entry = this->entry(sequence);
  entry.ended_us.store(since_start(time), kRelaxed);
  entry.state.store(static_cast<std::uint32_t>(FlightState::kFailed), std::memory_order_release);
}

void log_last_operations(const FlightRecorder& recorder, const Logger& logger) {
  constexpr std::size_t kMost = 16;
  if (!logger.is_enabled(LogLevel::kDebug)) return;
  const FlightRecord record = parse_flight(recorder.copy());
  const std::size_t num_skipped =
      record.operations.size() - std::min(kMost, record.operations.size());
  for (std::size_t i = num_skipped; i < record.operations.size(); ++i) {
    logger.debug("group '" + record.group + "', " + to_text(record.operations[i]));
  }
}

}  // namespace trireme::collectives
