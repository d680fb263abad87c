#include "trireme/wire/endpoint/tcp/endpoint.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "trireme/wire/system/byte_form.h"

namespace trireme::transport::internal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kAbandonedAfter{1000};
constexpr milliseconds kFailedPatience{1000};  // for the others to learn the cause of a failure
constexpr std::uint64_t kCarrierId = std::uint64_t{1} << 32;   // no rank
constexpr std::uint64_t kProcessIds = std::uint64_t{1} << 33;  // and the rank

Error closed_error() { return Error(ErrorKind::kCancelled, "the endpoint was closed"); }

std::optional<Error> error_of(const std::function<void()>& step) {
  try {
    step();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorKind::kResourceExhausted, "no memory for messages", error);
  }
}

}  // namespace

TcpEndpoint::TcpEndpoint(int rank, Links links, OnAbandon on_abandon)
    : rank_(rank),
      world_size_(static_cast<int>(links.sockets.size())),
      failure_(std::make_shared<Failure>()),
      local_peers_(std::move(links.local_sockets), std::move(links.hosts)),
      domains_(failure_),
      matcher_(rank_, *this, domains_),
      carrier_(std::move(links.carrier)),
      path_(std::move(links.path)),
      on_abandon_(std::move(on_abandon)) {
  if (carrier_ && carrier_->descriptor().is_open()) {
    poller_.add(carrier_->descriptor(), kCarrierId);
  }
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    poller_.add(links.sockets[peer], static_cast<std::uint64_t>(peer));
    peers_.try_emplace(peer, peer, std::move(links.sockets[peer]),
                       PeerContext{board_, domains_, carrier_.get(), memory_of(peer), &matcher_});
    watch_process(peer);
  }
  thread_.emplace("tcp rank " + std::to_string(rank_), [this] { serve(); });
}

/// Where this process can read it.
std::optional<ProcessMemory> TcpEndpoint::memory_of(int peer) const {
  const auto process = local_peers_.process_of(peer);
  return process ? ProcessMemory::open(*process) : std::nullopt;
}

void TcpEndpoint::watch_process(int rank) {
  Descriptor process = local_peers_.watch_process(rank);
  if (!process.is_open()) {
    if (local_peers_.process_of(rank) != ::getpid()) liveness_.add(rank);
    return;
  }
  poller_.add(process, kProcessIds + static_cast<std::uint64_t>(rank));
  processes_.emplace(rank, std::move(process));
}

// ---- Any thread

WorkPtr TcpEndpoint::send(int peer, Tag tag, std::span<const std::byte> data,
                          const Envelope& envelope) {
  return post_work(peer, tag, [this, peer, tag, data, envelope](const PendingWorkPtr& work) {
    if (peer != rank_) return peers_.at(peer).post_send(tag, {data, envelope, work});
    to_self_[tag].sends.push_back({data, envelope, work});
    send_to_self(tag);
  });
}

WorkPtr TcpEndpoint::recv(int peer, Tag tag, Placement place, Inspection inspect) {
  return post_work(peer, tag,
                   [this, peer, tag, place = std::move(place),
                    inspect = std::move(inspect)](const PendingWorkPtr& work) {
                     if (peer != rank_)
                       return peers_.at(peer).post_recv(tag, {place, inspect, work});
                     to_self_[tag].recvs.push_back({place, inspect, work});
                     send_to_self(tag);
                   });
}

void TcpEndpoint::tell(int peer, Tag tag, const Envelope& note) {
  check_peer(peer, *this);
  if (peer == rank_) return board_.put(peer, tag, note);
  poller_.post([this, peer, tag, note] { attempt([&] { peers_.at(peer).tell(tag, note); }); });
}

WorkPtr TcpEndpoint::post_work(int peer, Tag tag,
                               std::function<void(const PendingWorkPtr&)> start) {
  check_peer(peer, *this);
  auto work = std::make_shared<PendingWork>(failure_);
  start_work(work, tag, [work, start = std::move(start)] { start(work); });
  return work;
}

void TcpEndpoint::start_work(const PendingWorkPtr& work, Tag tag, std::function<void()> start) {
  const bool is_posted = poller_.post([this, work, tag, start = std::move(start)] {
    const auto error = error_of([&] {
      // First its own domain's: that the world has ended may follow from it.
      if (const auto failed = domains_.failure_of(tag)) return work->fail(*failed);
      if (over_) return work->fail(*over_);
      start();
    });
    if (!error) return;
    fail_world(*error);
    work->fail(*error);  // it may be kept nowhere
  });
  if (!is_posted) work->fail(closed_error());
  // The loop's thread first: it may be behind this one on its core, which goes on for milliseconds.
  if (!LibraryThread::is_current()) sched_yield();
}

/// Blocks until it was run; not at all, and false, where the loop has ended.
bool TcpEndpoint::run_on_loop(const std::function<void()>& function) {
  const auto done = std::make_shared<PendingWork>(failure_);
  const bool is_posted = poller_.post([this, &function, done] {
    attempt(function);
    done->complete();
  });
  if (is_posted) done->wait_for(milliseconds::max());
  return is_posted;
}

void TcpEndpoint::poison(const Error& error) {
  Error named = flattened(error);
  failure_->set(named.add({.rank = rank_}));
  domains_.fail_all(*failure_->error());
  failure_->mark_given();
  run_on_loop([&] { fail_world(named); });
}

void TcpEndpoint::fail(Tag first_tag, const Error& error) {
  Error named = flattened(error);
  named.add({.rank = rank_});
  const bool has_run = run_on_loop([&] { fail_domain(first_tag, named); });
  if (!has_run) domains_.fail(first_tag, named);
}

void TcpEndpoint::shutdown(milliseconds deadline) {
  poller_.post([this, deadline] {
    leave(deadline);
    attempt([&] { say_goodbye(); });
  });
  thread_->join();
  if (!ending_->error) return;
  failure_->mark_given();
  throw Error(*ending_->error);
}

TcpEndpoint::~TcpEndpoint() {
  poller_.post([this] { leave(failed_at_ ? kFailedPatience : milliseconds(0)); });
  thread_->join();
}

// ---- The progress thread

void TcpEndpoint::serve() {
  while (!has_ended()) {
    attempt([&] {
      for (const Poller::Event& event : poller_.wait(next_deadline())) serve_peer(event);
    });
    progress_carrier();
    if (!over_ && liveness_.is_due()) attempt([&] { liveness_.look(peers_); });
    write_to_peers();
    report_if_abandoned();
  }
  close_all();
}

void TcpEndpoint::serve_peer(const Poller::Event& event) {
  if (event.id == kCarrierId) return;
  if (event.id >= kProcessIds) return note_end_of_process(static_cast<int>(event.id - kProcessIds));
  Peer& peer = peers_.at(static_cast<int>(event.id));
  if (event.is_readable) {
    const auto lost = error_of([&] { peer.read(); });
    // First what it said of a group: its end may follow from that.
    attempt([&] { take_failures(peer); });
    if (lost) return fail_world(*lost);
    attempt([&] { peer.check_goodbye(); });
  }
  attempt([&] {
    if (event.is_writable && peer.wants_to_write()) peer.write();
  });
}

void TcpEndpoint::note_end_of_process(int rank) {
  attempt([&] { poller_.remove(processes_.at(rank)); });
  processes_.erase(rank);
  peers_.at(rank).note_end_of_process();
}

void TcpEndpoint::progress_carrier() {
  if (carrier_ && !over_) attempt([&] { carrier_->progress(); });
}

void TcpEndpoint::write_to_peers() {
  for (auto& [rank, peer] : peers_) {
    attempt([&, &peer = peer] {
      // Where the socket was full, an event will tell.
      if (peer.wants_to_write() && !peer.interest.in_writing) peer.write();
      if (!over_) peer.check();
    });
    attempt([&, rank = rank, &peer = peer] { update_interest(rank, peer); });
  }
}

void TcpEndpoint::update_interest(int rank, Peer& peer) {
  const Poller::Interest wanted{.in_writing = peer.wants_to_write()};
  if (!peer.socket().is_open() || wanted == peer.interest) return;
  poller_.change(peer.socket(), static_cast<std::uint64_t>(rank), wanted);
  peer.interest = wanted;
}

void TcpEndpoint::send_to_self(Tag tag) {
  PostedMessages& posted = to_self_[tag];
  if (posted.sends.empty() || posted.recvs.empty()) return;
  try {
    deliver(posted.sends.front(), posted.recvs.front());
  } catch (const Error& error) {
    if (!domains_.contains(tag)) throw;
    return fail_domain(tag, error);
  }
  posted.sends.pop_front();
  posted.recvs.pop_front();
  if (posted.is_empty()) to_self_.erase(tag);
}

/// By what this rank has noticed, or its owner. The others are told before it is seen here: whoever
/// sees it may end the process.
void TcpEndpoint::fail_domain(Tag tag, const Error& error) {
  const Tag first_tag = domain_of(tag);
  if (!domains_.has_failed(first_tag)) tell_failure(first_tag, error);
  end_domains(domains_.fail(first_tag, error), error);
}

void TcpEndpoint::attempt(const std::function<void()>& step) {
  if (const auto error = error_of(step)) fail_world(*error);
}

void TcpEndpoint::fail_world(const Error& error) {
  failure_->set(flattened(error));
  domains_.fail_all(*failure_->error());
  if (failed_at_) return;
  failed_at_ = Clock::now();
  abandon_works(*failure_->error());
}

/// Of domains, as `peer` told or by what it sent.
void TcpEndpoint::take_failures(Peer& peer) {
  for (const Peer::DomainFailure& failure : peer.take_failures()) {
    // Whoever told it may have told the others; but this rank may end before they have read that.
    fail_domain(failure.first_tag, failure.error);
  }
}

/// Before its works end: then the owner may end the process.
void TcpEndpoint::tell_failure(Tag first_tag, const Error& error) {
  if (over_) return;
  const std::vector<std::byte> bytes = error_to_bytes(error);
  for (const int rank : domains_.ranks_of(first_tag)) {
    if (rank != rank_) peers_.at(rank).tell_failure(first_tag, bytes);
  }
}

void TcpEndpoint::end_domains(const std::vector<Tag>& failed, const Error& error) {
  if (over_) return;
  std::vector<PendingWorkPtr> works;
  for (const Tag first_tag : failed) {
    matcher_.abandon(first_tag, works);
    for (auto& [rank, peer] : peers_) peer.abandon(first_tag, error, works);
    for (auto posted = to_self_.begin(); posted != to_self_.end();) {
      const bool is_its = domain_of(posted->first) == first_tag;
      if (is_its) take_works(posted->second, works);
      posted = is_its ? to_self_.erase(posted) : std::next(posted);
    }
  }
  for (const PendingWorkPtr& work : works) work->fail(error);
}

void TcpEndpoint::abandon_works(const Error& error) {
  over_ = error;
  const std::vector<std::byte> poison = error_to_bytes(error);
  std::vector<PendingWorkPtr> works;
  // Who hears of the failure may close its carrier: this one is at rest then.
  if (carrier_) abandon_carrier(works);
  // The others are written to before the works end: then the owner may end the process.
  for (auto& [rank, peer] : peers_) peer.abandon(poison, works);
  for (auto& [tag, posted] : to_self_) take_works(posted, works);
  to_self_.clear();
  matcher_.abandon(works);
  for (const PendingWorkPtr& work : works) work->fail(error);
}

void TcpEndpoint::abandon_carrier(std::vector<PendingWorkPtr>& works) {
  if (carrier_->descriptor().is_open()) poller_.remove(carrier_->descriptor());
  carrier_->abandon(works);
}

void TcpEndpoint::report_if_abandoned() {
  if (!on_abandon_ || !failed_at_) return;
  if (failure_->is_given() || ending_) {
    on_abandon_ = nullptr;
  } else if (Clock::now() >= *failed_at_ + kAbandonedAfter) {
    std::exchange(on_abandon_, nullptr)(*failure_->error());
  }
}

// ---- The way out

void TcpEndpoint::say_goodbye() {
  if (has_work()) {
    fail_world(lost_rank(rank_, "it said goodbye with messages under way"));
  } else if (!failed_at_) {
    for (auto& [rank, peer] : peers_) peer.say_goodbye();
  }
}

void TcpEndpoint::leave(milliseconds patience) { ending_ = {patience, Clock::now(), {}}; }

bool TcpEndpoint::has_work() const {
  return !to_self_.empty() || matcher_.has_work() ||
         std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second.has_work(); });
}

bool TcpEndpoint::has_ended() {
  if (!ending_) return false;
  std::vector<int> missing;
  bool is_written = true;
  for (const auto& [rank, peer] : peers_) {
    if (!(failed_at_ ? peer.knows_failure() : peer.has_said_goodbye())) missing.push_back(rank);
    is_written = is_written && !peer.wants_to_write();
  }
  const bool is_complete = missing.empty() && is_written;
  if (!is_complete && Clock::now() < ending_deadline()) return false;
  if (failed_at_) {
    ending_->error = failure_->error();
  } else if (!is_complete) {
    ending_->error = missing_goodbyes(rank_, missing, ending_->patience);
  }
  return true;
}

Deadline TcpEndpoint::ending_deadline() const {
  const Deadline deadline = ending_->start + ending_->patience;
  if (!failed_at_) return deadline;
  return std::min(deadline, std::max(ending_->start, *failed_at_) + kFailedPatience);
}

Deadline TcpEndpoint::next_deadline() {
  Deadline next = Clock::now() + std::chrono::hours(1);
  if (!over_) next = std::min(next, liveness_.next());
  if (carrier_ && !over_) next = std::min(next, carrier_->next_progress());
  for (const auto& [rank, peer] : peers_) {
    if (!over_) next = std::min(next, peer.next_check());
  }
  if (ending_) next = std::min(next, ending_deadline());
  if (failed_at_ && on_abandon_) next = std::min(next, *failed_at_ + kAbandonedAfter);
  return next;
}

void TcpEndpoint::close_all() {
  for (auto& [rank, peer] : peers_) peer.close();
  if (!over_) abandon_works(closed_error());
  poller_.close();
}

}  // namespace trireme::transport::internal
