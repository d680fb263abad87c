#include "trireme/wire/endpoint/tcp/flows.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trireme/wire/system/byte_form.h"

namespace trireme::transport::internal {
namespace {

constexpr std::size_t kFlowTurnBytes = 1 << 20;

}  // namespace

Flow::Header Flow::to_bytes(const Segment& segment) {
  FixedWriter<kHeaderBytes> writer;
  writer.integer(segment.key).integer(segment.offset).integer(segment.bytes);
  return writer.written();
}

Segment Flow::parse(const Header& header) {
  ByteReader reader(header);
  Segment segment;
  segment.key = reader.integer<std::uint64_t>();
  segment.offset = reader.integer<std::uint64_t>();
  segment.bytes = reader.integer<std::uint64_t>();
  return segment;
}

void Flow::start(const Segment& segment, std::span<const std::byte> payload) {
  sent_header_ = to_bytes(segment);
  payload_ = payload;
  num_written_ = 0;
}

std::optional<bool> Flow::write() {
  while (num_written_ < kHeaderBytes + payload_.size()) {
    const std::size_t in_header = std::min(num_written_, kHeaderBytes);
    const std::array<std::span<const std::byte>, 2> rest = {
        std::span<const std::byte>(sent_header_).subspan(in_header),
        payload_.subspan(num_written_ - in_header)};
    const auto count = write_some(socket_, rest);
    if (!count) return std::nullopt;
    if (*count == 0) return false;
    num_written_ += *count;
  }
  return true;
}

bool Flow::read(SegmentHandler& handler) {
  for (std::size_t turn = 0; turn < kFlowTurnBytes;) {
    const auto count = read_once(handler);
    if (!count) return false;
    if (*count == 0) return true;
    turn += *count;
  }
  return true;
}

std::optional<std::size_t> Flow::read_once(SegmentHandler& handler) {
  if (num_header_bytes_ < kHeaderBytes) {
    const auto count = read_some(socket_, std::span(header_).subspan(num_header_bytes_));
    num_header_bytes_ += count.value_or(0);
    if (num_header_bytes_ == kHeaderBytes) {
      segment_ = parse(header_);
      memory_ = handler.begin_segment(segment_);
      num_read_ = 0;
    }
    return count;
  }
  const auto count = read_some(socket_, memory_.subspan(num_read_));
  num_read_ += count.value_or(0);
  if (num_read_ == memory_.size()) {
    num_header_bytes_ = 0;
    handler.end_segment(segment_);
  }
  return count;
}

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

namespace {

constexpr std::uint64_t kIdsOfRank = 256;  // of the poller; kMaxTcpFlows are used

std::uint64_t id_of(int rank, std::size_t flow) {
  return static_cast<std::uint64_t>(rank) * kIdsOfRank + flow;
}

}  // namespace

FlowCarrier::FlowCarrier(std::vector<std::vector<Descriptor>> flows, std::size_t min_bytes)
    : min_bytes_(min_bytes) {
  for (int rank = 0; rank < static_cast<int>(flows.size()); ++rank) {
    const std::size_t num_flows = flows[rank].size();
    if (num_flows == 0) continue;
    const auto [entry, is_new] = peers_.emplace(
        rank,
        Peer{PeerFlows(rank, std::move(flows[rank])), std::vector<Poller::Interest>(num_flows)});
    for (std::size_t flow = 0; flow < num_flows; ++flow) {
      poller_.add(entry->second.flows.socket(flow), id_of(rank, flow));
    }
  }
}

std::uint64_t FlowCarrier::receive(int peer, std::span<std::byte> memory, PendingWorkPtr work) {
  const std::uint64_t key = ++last_key_;
  advance(peer, [&](PeerFlows& flows) { flows.receive(key, memory, std::move(work)); });
  return key;
}

void FlowCarrier::send(int peer, std::uint64_t key, std::span<const std::byte> data,
                       PendingWorkPtr work) {
  advance(peer, [&](PeerFlows& flows) { flows.send(key, data, std::move(work)); });
}

bool FlowCarrier::has_work(int peer) const { return peers_.at(peer).flows.has_work(); }

void FlowCarrier::progress() {
  for (const Poller::Event& event : poller_.wait(Deadline{})) {
    advance(static_cast<int>(event.id / kIdsOfRank), [&](PeerFlows& flows) {
      if (event.is_readable) flows.read(event.id % kIdsOfRank);
      if (event.is_writable) flows.write();
    });
  }
  trouble_.check();
}

/// What a rank's connection may explain better waits for that; other errors are thrown.
void FlowCarrier::advance(int rank, const std::function<void(PeerFlows&)>& step) {
  Peer& peer = peers_.at(rank);
  try {
    step(peer.flows);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kPeerLost) throw;
    trouble_.note(error);
  }
  for (std::size_t flow = 0; flow < peer.interests.size(); ++flow) {
    const Poller::Interest wanted = peer.flows.wanted(flow);
    if (wanted == peer.interests[flow] || !peer.flows.socket(flow).is_open()) continue;
    poller_.change(peer.flows.socket(flow), id_of(rank, flow), wanted);
    peer.interests[flow] = wanted;
  }
}

void FlowCarrier::abandon(std::vector<PendingWorkPtr>& works) {
  for (auto& [rank, peer] : peers_) peer.flows.abandon(works);
}

}  // namespace trireme::transport::internal
