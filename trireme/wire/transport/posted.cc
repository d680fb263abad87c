#include "trireme/wire/transport/posted.h"

#include <algorithm>
#include <string>

#include "trireme/wire/transport/watch.h"

namespace trireme::transport {

void check_peer(int peer, const Endpoint& endpoint) {
  if (peer >= 0 && peer < endpoint.world_size()) return;
  Error error(ErrorKind::kInvalidArgument, "there is no rank " + std::to_string(peer) +
                                               " in a world of " +
                                               std::to_string(endpoint.world_size()) + " ranks");
  error.add({.rank = endpoint.rank(), .peer = peer});
  throw error;
}

Error missing_goodbyes(int rank, const std::vector<int>& missing,
                       std::chrono::milliseconds deadline) {
  Error error(ErrorKind::kTimeout, "no goodbye from " + ranks_text(missing) + " within " +
                                       std::to_string(deadline.count()) +
                                       " ms; are they still at work?");
  error.add({.rank = rank, .operation = "shutdown"});
  return error;
}

std::optional<std::span<std::byte>> place_message(const PostedRecv& recv, std::size_t bytes,
                                                  const Envelope& envelope) {
  std::optional<std::span<std::byte>> memory;
  try {
    if (recv.inspect) recv.inspect(envelope);
    memory = recv.place(bytes);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorKind::kResourceExhausted,
                "no memory for a message of " + std::to_string(bytes) + " bytes", error);
  }
  if (memory && memory->size() != bytes) {
    throw Error(ErrorKind::kInvalidArgument, "a message has " + std::to_string(bytes) +
                                                 " bytes, its recv gave memory for " +
                                                 std::to_string(memory->size()));
  }
  return memory;
}

void deliver(const PostedSend& send, const PostedRecv& recv) {
  const auto memory = place_message(recv, send.data.size(), send.envelope);
  if (memory) std::copy(send.data.begin(), send.data.end(), memory->begin());
  send.work->complete();
  recv.work->complete();
}

void take_works(Stream& stream, std::vector<PendingWorkPtr>& works) {
  for (PostedSend& send : stream.sends) works.push_back(std::move(send.work));
  for (PostedRecv& recv : stream.recvs) works.push_back(std::move(recv.work));
  stream = {};
}

}  // namespace trireme::transport
