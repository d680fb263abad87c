#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/device.h"
#include "trireme/base/log.h"
#include "trireme/wire/collectives/flight/record.h"
#include "trireme/wire/collectives/request.h"
#include "trireme/wire/collectives/tuner.h"
#include "trireme/wire/endpoint/endpoint.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::collectives {

class Group;

struct GroupOptions {
  std::string name;      ///< For messages: `data 1`.
  std::uint64_t id = 0;  ///< Differs between the groups of a world; part of the tags.
  /// Of an operation, from where those before it have ended.
  std::chrono::milliseconds deadline{300'000};
  /// Whose failure is this group's too, and has all its ranks; may be null. Read in the constructor.
  const Group* parent = nullptr;
  Order order = Order::kCanonical;  ///< Of reductions.
  Logger logger{LogLevel::kOff};    ///< The last operations, at debug level, after a failure.

  // Of buffers in memory of GPUs; docs/algorithms.md, Device buffers.
  Device device;  ///< Where this rank's buffers are.
  /// Operations start after what it has at the call. Outlives the group; may be null.
  Stream* stream = nullptr;
  /// Ranks compare each call before it starts, and wait for each other.
  bool checks_calls = false;

  /// The last ranks of the group train nothing: in an all_reduce they sum for the others, on links
  /// that would else be idle, and their data is left. They call it like the others. Other
  /// reductions are refused. The rest is as in any group; nothing goes by shared memory. The same
  /// on all ranks.
  int num_reducers = 0;

  // Changes speed only. What costs least is chosen for each operation.
  Costs costs = kUsualCosts;           ///< Of messages; `measure_costs` measures them.
  std::optional<Algorithm> algorithm;  ///< To be taken wherever it can be.
};

/// Of a message between two ranks; tag and dtype are the same on both sides.
struct MessageOptions {
  std::uint64_t tag = 0;        ///< A recv takes messages of its tag alone.
  Dtype dtype = Dtype::kU8;     ///< Of its elements.
  bool may_be_shorter = false;  ///< Of a recv: it takes less than its memory holds, too.
};

/// What goes to each rank of a group, or comes from it; empty where nothing does.
using Sends = std::vector<std::span<const std::byte>>;
using Receives = std::vector<std::span<std::byte>>;

/// Ranks of a world that run collectives together.
///
/// Ranks make the groups that they share in the same order, with the same ids and ranks; where they
/// do not, those that wait in one say so after 2 s.
///
/// Operations of a group run one after another, in the order of the calls, which must be the same
/// on all its ranks; where they differ in kind, dtype, count or the like, all ranks get the same
/// kInvalidArgument, which names both. Reductions are combined in one order, by
/// kernels::tree_merges over group ranks, whatever size, algorithm or timing.
///
/// Where all ranks are on one host and may share memory, nothing is sent: they read and write the
/// same memory. A small operation is then often done when its call returns.
///
/// Buffers are in the host's memory, or of all ranks in GPUs' (`GroupOptions::device`): then the
/// calls give operations to a stream, and only works, `run_after` and the end of the group wait.
///
/// Errors   the first failure of a group ends it and its children on all their ranks: a deadline
///          that has passed (kTimeout, naming who is missing), ranks that differ, a refused message,
///          `abort`. The rest of the world goes on. A lost rank ends the world.
///
/// Threads  calls from one thread at a time, `missing` from any; works may be waited for anywhere.
class Group {
 public:
  /// endpoint   outlives the group. ranks: world ranks in group order; this rank among them.
  Group(transport::Endpoint& endpoint, std::vector<int> ranks, GroupOptions options);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int size() const;
  int group_rank() const;
  const std::vector<int>& ranks() const;
  transport::Endpoint& endpoint() const;
  std::chrono::milliseconds deadline() const;

  /// Of the calls from now on; this rank's alone.
  void set_deadline(std::chrono::milliseconds deadline);

  /// World ranks for which the operation under way waits at the moment, in order.
  std::vector<int> missing() const;

  /// This rank's last operations, and who was late how often. Any thread.
  FlightRecord flight() const;

  /// Memory for buffers of this group, zeros, until the group ends: where its ranks share memory,
  /// operations on it need no copy, but those whose parts are of any size. All ranks call it with
  /// the same number, in the order of the other calls. Blocks; errors are thrown.
  std::span<std::byte> allocate(std::size_t bytes);

  /// The next all_reduce, reduce_scatter, all_gather or barrier carries this number, which is to be
  /// the same on all ranks: a hash of what they should hold alike. Where it is not, all ranks get
  /// kCorruptData that names those that differ from the most; kInvalidArgument where a rank has
  /// given none. Several before one operation are mixed in the order of the calls.
  ///
  /// Cost   none but the hash's own: it travels with what is sent anyway.
  void attach_hash(std::uint64_t hash);

  /// data = the reduction over ranks of data, in place.
  ///
  /// by   an operation, or `scaled_sum`, whose scale may differ between ranks.
  transport::WorkPtr all_reduce(Elements data, Reduce by = {});

  /// The same for the root alone; the others' data stays.
  transport::WorkPtr reduce(Elements data, int root_group_rank, Reduce by = {});

  /// This rank's part of `data` becomes the reduction, the rest is left. Parts are chunk_of, or of
  /// `counts` elements, one behind the other.
  transport::WorkPtr reduce_scatter(Elements data, Reduce by = {});
  transport::WorkPtr reduce_scatter(Elements data, std::span<const std::int64_t> counts,
                                    Reduce by = {});

  /// The same with all of `data` left, of a group in the host's memory.
  ///
  /// result   this rank's part: of its elements, apart from `data`.
  transport::WorkPtr reduce_scatter(Elements data, std::span<const std::int64_t> counts, Reduce by,
                                    std::span<std::byte> result);

  /// all = what the ranks gave, one behind the other: mine.size() bytes each, or counts[i].
  ///
  /// mine   lent until the work ends; its part of `all`, or apart from it.
  transport::WorkPtr all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  transport::WorkPtr all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                std::span<const std::int64_t> counts);

  /// data = the root's data.
  transport::WorkPtr broadcast(std::span<std::byte> data, int root_group_rank);

  /// The root receives all[i] from rank i; all[i] goes from the root to rank i. Of any sizes; what
  /// does not match is kInvalidArgument. all: of the root only.
  transport::WorkPtr gather(std::span<const std::byte> mine, Receives all, int root_group_rank);
  transport::WorkPtr scatter(Sends all, std::span<std::byte> mine, int root_group_rank);

  /// Part i of `send` goes to rank i, part i of `recv` comes from it: size() equal parts. No
  /// overlap.
  transport::WorkPtr all_to_all(std::span<const std::byte> send, std::span<std::byte> recv);

  /// The same with parts of any sizes anywhere.
  transport::WorkPtr all_to_all(Sends sends, Receives recvs);

  transport::WorkPtr barrier();

  /// Ends this group and its children on purpose: every operation of theirs, on every rank, fails
  /// with kCancelled, the reason and this rank. Any thread.
  void abort(const std::string& reason);

  /// Of its domain (endpoint/domains.h).
  transport::Tag first_tag() const;

  /// The error that ended the group; nothing while it is well. Any thread.
  std::optional<Error> failure() const;

  /// Messages between two ranks of the group, apart from its operations: a recv takes the oldest
  /// one of its tag from its source, a group rank or transport::kAnySource. One that has not moved
  /// within the deadline fails the group, also if nobody waits for it; so does one of another dtype
  /// or size than its recv's, and one that nobody has received when the group ends on a rank.
  ///
  /// A send of up to 8 KiB ends once it is copied, which says nothing of the receiver.
  ///
  /// data   in the host's memory; kInvalidArgument of a group on GPUs.
  transport::WorkPtr send(int peer_group_rank, std::span<const std::byte> data,
                          const MessageOptions& options = {});
  transport::RecvWorkPtr recv(int source_group_rank, std::span<std::byte> data,
                              const MessageOptions& options = {});

  /// Withdraws a recv for which no message has come: its work fails with kCancelled, and its memory
  /// is free. Returns whether it did; else it goes on, or has ended.
  bool cancel(const transport::RecvWorkPtr& recv);

  /// What a recv that has ended well has taken; its source as a group rank.
  transport::Received received(const transport::RecvWork& recv) const;

 private:
  struct State;
  transport::WorkPtr exchange(Request request);
  transport::WorkPtr scatter_sums(Elements data, std::span<const std::int64_t> counts, Reduce by,
                                  std::span<std::byte> result);

  std::unique_ptr<State> state_;
};

/// An operation of `group`, for whoever waits for it: the group, which knows who is missing, ends
/// it at its deadline.
transport::Awaited group_work(transport::Work& work, const Group& group);

/// As above, a message to a rank of the world, or from one of several.
transport::Awaited group_message(transport::Work& work, const Group& group, std::vector<int> peers);

/// What is given to `stream` from now on starts after an operation of a group on GPUs, for which
/// the host does not wait; after one of another group when that has ended, which blocks. Throws the
/// error of one that has failed.
void run_after(Stream& stream, transport::Work& work);

}  // namespace trireme::collectives
