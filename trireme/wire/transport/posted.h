#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "trireme/wire/transport/endpoint.h"
#include "trireme/wire/transport/pending_work.h"

namespace trireme::transport {

struct PostedSend {
  std::span<const std::byte> data;
  Envelope envelope;
  PendingWorkPtr work;
};

struct PostedRecv {
  Placement place;
  Inspection inspect;  ///< May be none.
  PendingWorkPtr work;
};

/// What is posted for one (sender, receiver, tag) and not matched yet, oldest first.
struct Stream {
  std::deque<PostedSend> sends;
  std::deque<PostedRecv> recvs;
  std::uint64_t num_credits = 0;  ///< Recvs posted by a remote receiver.

  bool is_empty() const { return sends.empty() && recvs.empty() && num_credits == 0; }
};

/// Throws kInvalidArgument where `peer` is no rank of the endpoint's world.
void check_peer(int peer, const Endpoint& endpoint);

/// kTimeout of a shutdown of `rank`: `missing` did not say goodbye.
Error missing_goodbyes(int rank, const std::vector<int>& missing,
                       std::chrono::milliseconds deadline);

/// Memory for a message of `bytes`, from the receiver; nothing where it is to be dropped. Throws what
/// `inspect` and `place` throw; kInvalidArgument where it gives another size; kResourceExhausted for
/// an exception that is no Error.
std::optional<std::span<std::byte>> place_message(const PostedRecv& recv, std::size_t bytes,
                                                  const Envelope& envelope);

/// Moves a message within the process and ends both works; errors of `place_message`.
void deliver(const PostedSend& send, const PostedRecv& recv);

/// Empties `stream` into `works`, which are to be failed.
void take_works(Stream& stream, std::vector<PendingWorkPtr>& works);

}  // namespace trireme::transport
