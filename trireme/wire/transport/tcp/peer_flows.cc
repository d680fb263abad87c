#include "trireme/wire/transport/tcp/peer_flows.h"

#include <algorithm>
#include <string>
#include <utility>

namespace trireme::transport::internal {
namespace {

constexpr int kTurnSegments = 16;  // then other ranks have their turn

std::size_t segment_bytes(std::size_t payload, std::size_t offset) {
  return std::min(payload - offset, kFlowSegment);
}

}  // namespace

PeerFlows::PeerFlows(int rank, std::vector<Descriptor> sockets) : rank_(rank) {
  for (Descriptor& socket : sockets) {
    lanes_.push_back({.flow = Flow(std::move(socket))});
  }
}

void PeerFlows::receive(std::uint64_t key, std::span<std::byte> memory, PendingWorkPtr work) {
  const std::size_t num_segments = (memory.size() + kFlowSegment - 1) / kFlowSegment;
  incoming_[key] = {
      .memory = memory, .work = std::move(work), .has_begun = std::vector<bool>(num_segments)};
  check_open();
}

void PeerFlows::send(std::uint64_t key, std::span<const std::byte> data, PendingWorkPtr work) {
  outgoing_.push_back({.key = key, .data = data, .work = std::move(work)});
  check_open();
  write();
}

// ---- Out

/// One segment each in turn: a message that any of them could take whole is carried by all.
void PeerFlows::write() {
  int turn = 0;
  for (bool has_moved = true; has_moved && turn < kTurnSegments;) {
    has_moved = false;
    for (Lane& lane : lanes_) {
      if (!write_segment(lane)) continue;
      has_moved = true;
      ++turn;
    }
  }
}

/// Whether a segment was ended.
bool PeerFlows::write_segment(Lane& lane) {
  if (!lane.flow.is_open() || (lane.outgoing == nullptr && !start_next(lane))) return false;
  const auto is_written = lane.flow.write();
  if (!is_written) {
    end_of(lane);
    return false;
  }
  if (!*is_written) return false;
  Outgoing& outgoing = *std::exchange(lane.outgoing, nullptr);
  outgoing.num_written += lane.num_bytes;
  if (outgoing.num_written == outgoing.data.size()) end(outgoing);
  return true;
}

void PeerFlows::end(Outgoing& outgoing) {
  const PendingWorkPtr work = std::move(outgoing.work);
  outgoing_.remove_if([&](const Outgoing& other) { return &other == &outgoing; });
  work->complete();
}

PeerFlows::Outgoing* PeerFlows::next_to_start() {
  for (Outgoing& one : outgoing_) {
    if (one.num_started < one.data.size()) return &one;
  }
  return nullptr;
}

bool PeerFlows::start_next(Lane& lane) {
  Outgoing* const next = next_to_start();
  if (next == nullptr) return false;
  lane.outgoing = next;
  lane.num_bytes = segment_bytes(next->data.size(), next->num_started);
  lane.flow.start({.key = next->key, .offset = next->num_started, .bytes = lane.num_bytes},
                  next->data.subspan(next->num_started, lane.num_bytes));
  next->num_started += lane.num_bytes;
  return true;
}

Poller::Interest PeerFlows::wanted(std::size_t flow) {
  return {.in_writing = lanes_[flow].outgoing != nullptr || next_to_start() != nullptr};
}

// ---- In

void PeerFlows::read(std::size_t flow) {
  Lane& lane = lanes_[flow];
  if (lane.flow.is_open() && !lane.flow.read(*this)) end_of(lane);
}

std::span<std::byte> PeerFlows::begin_segment(const Segment& segment) {
  const auto found = incoming_.find(segment.key);
  const std::size_t index = segment.offset / kFlowSegment;
  if (found == incoming_.end() || segment.offset % kFlowSegment != 0 ||
      index >= found->second.has_begun.size() || found->second.has_begun[index] ||
      segment.bytes != segment_bytes(found->second.memory.size(), segment.offset)) {
    Error error(ErrorKind::kCorruptData, "rank " + std::to_string(rank_) +
                                             " sent a segment of no message that is under way");
    throw Error(error.add({.peer = rank_}));
  }
  found->second.has_begun[index] = true;
  return found->second.memory.subspan(segment.offset, segment.bytes);
}

void PeerFlows::end_segment(const Segment& segment) {
  const auto found = incoming_.find(segment.key);
  found->second.num_read += segment.bytes;
  if (found->second.num_read < found->second.memory.size()) return;
  const PendingWorkPtr work = std::move(found->second.work);
  incoming_.erase(found);
  work->complete();
}

// ---- The end

void PeerFlows::end_of(Lane& lane) {
  lane.flow.close();
  if (has_work()) throw lost_rank(rank_, "a connection for its messages closed");
}

void PeerFlows::check_open() const {
  const bool is_open = std::ranges::any_of(lanes_, [](const Lane& l) { return l.flow.is_open(); });
  if (!is_open) throw lost_rank(rank_, "all connections for its messages are closed");
}

void PeerFlows::abandon(std::vector<PendingWorkPtr>& works) {
  for (Lane& lane : lanes_) {
    lane.flow.close();
    lane.outgoing = nullptr;
  }
  for (Outgoing& one : outgoing_) works.push_back(std::move(one.work));
  for (auto& [key, one] : incoming_) works.push_back(std::move(one.work));
  outgoing_.clear();
  incoming_.clear();
}

}  // namespace trireme::transport::internal
