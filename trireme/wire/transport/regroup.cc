#include "trireme/wire/transport/regroup.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "trireme/wire/transport/byte_form.h"
#include "trireme/wire/transport/failure.h"
#include "trireme/wire/transport/watch.h"

namespace trireme::transport::internal {
namespace {

constexpr std::uint32_t kMaxMembers = 1U << 20;

std::string wish_text(const RegroupOptions& options) {
  const std::string who =
      options.members.empty() ? "those that call in" : ranks_text(options.members);
  return who + ", at least " + std::to_string(options.at_least);
}

std::vector<int> without(const std::set<int>& ranks, const std::set<int>& others) {
  std::vector<int> result;
  std::ranges::set_difference(ranks, others, std::back_inserter(result));
  return result;
}

}  // namespace

std::string to_bytes(const RegroupCall& call) {
  ByteWriter writer;
  writer.integer(static_cast<std::int32_t>(call.world_size))
      .integer(static_cast<std::int64_t>(call.options.window.count()))
      .integer(static_cast<std::int32_t>(call.options.at_least))
      .integer(static_cast<std::uint32_t>(call.options.members.size()));
  for (const int rank : call.options.members) writer.integer(static_cast<std::int32_t>(rank));
  const std::vector<std::byte> bytes = writer.take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

RegroupCall parse_regroup_call(std::string_view bytes) {
  ByteReader reader(std::as_bytes(std::span(bytes)));
  RegroupCall call;
  call.world_size = reader.integer<std::int32_t>();
  call.options.window = std::chrono::milliseconds(reader.integer<std::int64_t>());
  call.options.at_least = reader.integer<std::int32_t>();
  const auto count = reader.integer<std::uint32_t>();
  const auto window = call.options.window;
  if (count > kMaxMembers || window.count() < 0 || window > std::chrono::hours(24 * 365)) {
    throw Error(ErrorKind::kCorruptData, "bytes that are no call to regroup");
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    call.options.members.push_back(reader.integer<std::int32_t>());
  }
  reader.finish();
  return call;
}

void Gathering::check_same(int rank, const RegroupCall& other) const {
  RegroupOptions wanted = other.options;
  wanted.window = call.options.window;
  if (wanted == call.options && other.world_size == call.world_size) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the ranks do not agree on who goes on in " + generation + ": rank " +
                  std::to_string(rank) + " wants " + wish_text(wanted) + ", others " +
                  wish_text(call.options) + "; give the same members on all");
}

std::optional<std::vector<int>> Gathering::decide(const std::set<int>& called,
                                                  const std::set<int>& present,
                                                  Deadline now) const {
  const RegroupOptions& options = call.options;
  const std::set<int> wanted(options.members.begin(), options.members.end());
  const std::vector<int> late = without(wanted.empty() ? present : wanted, called);
  for (const int rank : late) {
    if (!present.contains(rank)) throw lost_rank(rank, "it was to go on in " + generation);
  }
  if (!late.empty() && now < deadline) return std::nullopt;
  const bool is_enough = std::ssize(called) >= options.at_least;
  if (is_enough && (late.empty() || wanted.empty())) {
    return std::vector<int>(called.begin(), called.end());
  }
  Error error(ErrorKind::kTimeout,
              std::to_string(called.size()) + " ranks have called in within " +
                  std::to_string(options.window.count()) + " ms to go on in " + generation +
                  ", wanted are " + wish_text(options) +
                  (late.empty() ? "; the others have ended" : "; late: " + ranks_text(late)));
  if (!late.empty()) error.add({.peer = late.front()});
  throw error;
}

Error late_for_generation(int rank, const std::string& generation,
                          const std::vector<int>& members) {
  Error error(ErrorKind::kTimeout, generation + " has begun without rank " + std::to_string(rank) +
                                       ": it called in too late; its members were " +
                                       ranks_text(members) +
                                       ". End this process, or wait longer in `regroup`");
  return error.add({.rank = rank});
}

}  // namespace trireme::transport::internal
