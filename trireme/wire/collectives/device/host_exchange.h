#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "trireme/base/cuda/memory.h"
#include "trireme/wire/collectives/call.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/request.h"
#include "trireme/wire/collectives/schedule/cache.h"
#include "trireme/wire/collectives/waits.h"

namespace trireme::collectives {

/// What the ranks of a group on GPUs tell each other over the endpoint, from memory of the host.
/// Every call blocks until the others have made it too; one that fails ends the group, and
/// throws.
///
/// Threads  caller-synchronised.
class HostExchange {
 public:
  /// members   their messages are not those of the group's other operations.
  explicit HostExchange(const Members& members);

  /// No call may follow.
  void close();

  /// Every rank's equal part of `all` goes to all others; the own one is there.
  void all_gather(std::span<std::byte> all);

  /// data = that of group rank 0.
  void broadcast(std::span<std::byte> data);

  /// kInvalidArgument on all ranks where they are about to do different things, kCorruptData where
  /// only their hashes differ.
  void compare(const Description& description);

 private:
  void run(Description description, const std::function<void(Call&)>& body);
  void run(const Request& request);

  const Members group_;
  const Members members_;
  Scratch scratch_;
  ScheduleCache schedules_;
  std::int64_t num_calls_ = 0;
};

/// What a rank tells the others of its GPU. All ranks are of one build.
struct Card {
  cuda::DeviceId device{};  ///< Which GPU, in all processes.
  std::int32_t index = 0;   ///< In its own.
  std::int32_t has_nccl = 0;
  std::uint64_t process = 0;  ///< The same in ranks of one process, on a host.
  std::uint64_t address = 0;  ///< Of its region, in its own process; 0: it has none.
  cuda::IpcHandle handle{};   ///< Of its region, for others.
};

/// Of this process.
std::uint64_t process_id();

/// By group rank.
std::vector<Card> exchange_cards(const Members& members, HostExchange& exchange, const Card& own);

/// Whether all ranks say so.
bool all_agree(const Members& members, HostExchange& exchange, bool own);

/// Group ranks that have the same GPU; nothing where all have their own.
struct Sharing {
  int first;
  int second;
};
std::optional<Sharing> find_sharing(const std::vector<Card>& cards);

/// Whether the ranks that wait for each other's GPUs wait in the same operation, found without any
/// message as long as nobody waits for long: then each tells what it is in, by notes.
///
/// Threads  caller-synchronised.
class Agreement {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Agreement(const Members& members) : members_(members), notes_(members) {}

  /// The operation under way has waited for long: tells the others, hears what they are in.
  ///
  /// Errors   kInvalidArgument, as check_same says, for ranks that do something else.
  void look(const Description& description, double scale, Time now);

  /// It has ended: those who were told hear it.
  void retract();

  /// World ranks that have not told that they are in it, in order; all others where all have.
  std::vector<int> missing(const Description& description) const;

 private:
  const Members& members_;
  WaitNotes notes_;
  std::optional<Time> differs_since_;
};

}  // namespace trireme::collectives
