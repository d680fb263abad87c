#include "trireme/wire/endpoint/sim/network.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include "trireme/base/system_error.h"
#include "trireme/wire/endpoint/work.h"

namespace trireme::transport::internal {

SimLoop::SimLoop() : thread_("sim", [this] { serve(); }) {}

SimLoop::~SimLoop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void SimLoop::post(std::function<void()> function, Clock::duration delay) {
  const std::lock_guard lock(mutex_);
  functions_.emplace(Clock::now() + delay, std::move(function));
  changed_.notify_all();
}

void SimLoop::run(const std::function<void()>& function) {
  const auto done = std::make_shared<PendingWork>(nullptr);
  post([&function, done] {
    function();
    done->complete();
  });
  done->wait_for(std::chrono::milliseconds::max());
}

void SimLoop::serve() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    if (functions_.empty()) {
      changed_.wait(lock);
    } else if (const auto due = functions_.begin()->first; due > Clock::now()) {
      changed_.wait_until(lock, due);
    } else {
      const auto next = functions_.extract(functions_.begin());
      lock.unlock();
      next.mapped()();
      lock.lock();
    }
  }
}

namespace {

/// By rank, a socket to each other one; none where memory is not shared.
std::vector<std::map<int, Descriptor>> connected_pairs(int num_ranks, bool shares_memory) {
  std::vector<std::map<int, Descriptor>> sockets(num_ranks);
  if (!shares_memory) return sockets;
  for (int i = 0; i < num_ranks; ++i) {
    for (int j = 0; j < i; ++j) {
      std::array<int, 2> pair{};
      if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
        throw_system_error("make a pair of sockets", errno);
      }
      sockets[i][j] = Descriptor(pair[0]);
      sockets[j][i] = Descriptor(pair[1]);
    }
  }
  return sockets;
}

}  // namespace

SimNetwork::SimNetwork(int num_ranks, SimOptions options)
    : num_ranks_(num_ranks),
      options_(options),
      failure_(std::make_shared<Failure>()),
      random_(options.seed),
      notes_(num_ranks) {
  for (int rank = 0; rank < num_ranks; ++rank) domains_.emplace_back(failure_);
  for (int rank = 0; rank < num_ranks; ++rank) ranks_.emplace_back(*this, rank);
  local_sockets_ = connected_pairs(num_ranks, options.shares_memory);
}

std::map<int, Descriptor> SimNetwork::take_local_sockets(int rank) {
  return std::move(local_sockets_.at(rank));
}

std::vector<int> SimNetwork::hosts() const {
  std::vector<int> hosts;
  for (int rank = 0; rank < num_ranks_; ++rank) {
    hosts.push_back(rank - rank % options_.ranks_per_host);
  }
  return hosts;
}

WorkPtr SimNetwork::send(const SimRoute& route, std::span<const std::byte> data,
                         const Envelope& envelope) {
  auto work = std::make_shared<PendingWork>(failure_);
  loop_.post([this, route, data, envelope, work] {
    if (!admit(route, work)) return;
    traffic_[route].posted.sends.push_back({data, envelope, work});
    match(route);
  });
  return work;
}

WorkPtr SimNetwork::recv(const SimRoute& route, Placement place, Inspection inspect) {
  auto work = std::make_shared<PendingWork>(failure_);
  loop_.post([this, route, place = std::move(place), inspect = std::move(inspect), work] {
    if (!admit(route, work)) return;
    traffic_[route].posted.recvs.push_back({place, inspect, work});
    match(route);
  });
  return work;
}

bool SimNetwork::admit(const SimRoute& route, const PendingWorkPtr& work) {
  for (const int rank : {route.from, route.to}) {
    if (gone_.contains(rank)) fail_now(lost_rank(rank, "it has said goodbye"));
  }
  return admit(route.from, route.tag, work);
}

void SimNetwork::match(const SimRoute& route) {
  Traffic& traffic = traffic_[route];
  if (traffic.posted.sends.empty() || traffic.posted.recvs.empty()) return;
  traffic.flying.emplace_back(traffic.posted.sends.front(), traffic.posted.recvs.front());
  traffic.posted.sends.pop_front();
  traffic.posted.recvs.pop_front();
  loop_.post([this, route] { arrive(route); }, flight_time());
}

/// Until it arrives, however often it is dropped on the way.
std::chrono::microseconds SimNetwork::flight_time() {
  std::uniform_int_distribution<std::int64_t> delay(0, options_.max_delay.count());
  std::uniform_int_distribution<int> percent(0, 99);
  std::chrono::microseconds time(delay(random_));
  while (percent(random_) < options_.drop_percent) time += options_.resend_after;
  return time;
}

void SimNetwork::arrive(const SimRoute& route) {
  const auto found = traffic_.find(route);
  if (found == traffic_.end()) return;  // the world has failed meanwhile
  Traffic& traffic = found->second;
  try {
    deliver(traffic.flying.front().first, traffic.flying.front().second);
  } catch (Error& error) {
    error.add({.rank = route.to, .peer = route.from});
    if (domains_[route.to].contains(route.tag)) return fail_now(domain_of(route.tag), error);
    return fail_now(error);
  }
  traffic.flying.pop_front();
  if (traffic.flying.empty() && traffic.posted.is_empty()) traffic_.erase(found);
}

void SimNetwork::fail(const Error& error) {
  failure_->set(error);
  loop_.run([&] { fail_now(error); });
}

void SimNetwork::fail(Tag first_tag, const Error& error) {
  loop_.run([&] { fail_now(first_tag, error); });
}

void SimNetwork::fail_now(Tag first_tag, const Error& error) {
  std::set<Tag> failed;
  for (DomainBoard& board : domains_) {
    for (const Tag tag : board.fail(first_tag, error)) failed.insert(tag);
  }
  std::vector<PendingWorkPtr> works;
  for (const Tag tag : failed) {
    for (Rank& rank : ranks_) rank.matcher.abandon(tag, works);
  }
  for (auto route = traffic_.begin(); route != traffic_.end();) {
    const bool is_its = failed.contains(domain_of(route->first.tag));
    if (is_its) take_works(route->second, works);
    route = is_its ? traffic_.erase(route) : std::next(route);
  }
  for (const PendingWorkPtr& work : works) work->fail(error);
}

/// Empties `traffic` into `works`, which are to be failed.
void SimNetwork::take_works(Traffic& traffic, std::vector<PendingWorkPtr>& works) {
  transport::take_works(traffic.posted, works);
  for (const auto& [send, recv] : traffic.flying) {
    works.insert(works.end(), {send.work, recv.work});
  }
}

void SimNetwork::fail_now(const Error& error) {
  failure_->set(error);
  for (DomainBoard& board : domains_) board.fail_all(*failure_->error());
  std::vector<PendingWorkPtr> works = std::move(goodbyes_);
  goodbyes_.clear();
  for (auto& [route, traffic] : traffic_) take_works(traffic, works);
  traffic_.clear();
  for (Rank& rank : ranks_) rank.matcher.abandon(works);
  letters_.clear();
  for (const PendingWorkPtr& work : works) work->fail(*failure_->error());
}

void SimNetwork::close(int rank) {
  loop_.run([this, rank] {
    if (!gone_.contains(rank)) fail_now(lost_rank(rank, "its connection closed"));
  });
}

WorkPtr SimNetwork::say_goodbye(int rank, std::chrono::milliseconds deadline) {
  auto work = std::make_shared<PendingWork>(failure_);
  loop_.post([this, rank, work, deadline] { hear_goodbye(rank, work, deadline); });
  return work;
}

void SimNetwork::hear_goodbye(int rank, const PendingWorkPtr& work,
                              std::chrono::milliseconds deadline) {
  if (has_flying_letters(rank)) {  // they arrive before it
    loop_.post([this, rank, work, deadline] { hear_goodbye(rank, work, deadline); },
               std::chrono::milliseconds(1));
    return;
  }
  if (ranks_[rank].matcher.has_work()) {
    fail_now(lost_rank(rank, "it said goodbye with messages under way"));
  }
  gone_.insert(rank);
  for (const Rank& other : ranks_) attempt([&] { other.matcher.check_left(rank); });
  for (NoteBoard& board : notes_) board.mark_left(rank);
  for (const auto& [route, traffic] : traffic_) {
    if (route.from == rank || route.to == rank) {
      fail_now(lost_rank(rank, "it said goodbye with messages under way"));
      break;
    }
  }
  if (const auto error = failure_->error()) return work->fail(*error);
  goodbyes_.push_back(work);
  if (static_cast<int>(gone_.size()) == num_ranks_) {
    for (const PendingWorkPtr& waiting : goodbyes_) waiting->complete();
    goodbyes_.clear();
  } else {
    loop_.post([this, rank, work, deadline] { give_up_goodbye(rank, work, deadline); }, deadline);
  }
}

void SimNetwork::give_up_goodbye(int rank, const PendingWorkPtr& work,
                                 std::chrono::milliseconds deadline) {
  std::vector<int> missing;
  for (int peer = 0; peer < num_ranks_; ++peer) {
    if (!gone_.contains(peer)) missing.push_back(peer);
  }
  work->fail(missing_goodbyes(rank, missing, deadline));
}

// ---- Any thread

WorkPtr SimNetwork::send(int rank, const MessageToSend& message) {
  auto work = std::make_shared<PendingWork>(failure_);
  loop_.post([this, rank, message, work] {
    if (!admit(rank, message.domain, work)) return;
    attempt([&] { ranks_[rank].matcher.post_send(message, work); }, work);
  });
  return work;
}

RecvWorkPtr SimNetwork::recv(int rank, const MessageToReceive& message) {
  auto work = std::make_shared<RecvWork>(failure_);
  loop_.post([this, rank, message, work] {
    if (!admit(rank, message.domain, work)) return;
    attempt(
        [&] {
          const auto error = ranks_[rank].matcher.post_recv(message, work);
          if (error) fail_now(message.domain, *error);
        },
        work);
  });
  return work;
}

bool SimNetwork::cancel(int rank, const RecvWorkPtr& work) {
  bool is_cancelled = false;
  loop_.run([&] { is_cancelled = ranks_[rank].matcher.cancel(*work); });
  return is_cancelled;
}

std::vector<WaitingMessage> SimNetwork::waiting(int rank, Tag domain) {
  std::vector<WaitingMessage> messages;
  loop_.run([&] { messages = ranks_[rank].matcher.waiting(domain); });
  return messages;
}

void SimNetwork::close(int rank, Tag first_tag) {
  loop_.post([this, rank, first_tag] {
    const auto error = ranks_[rank].matcher.close(first_tag);
    if (error) fail_now(first_tag, *error);
    domains_[rank].close(first_tag);
  });
}

// ---- The loop

/// Its domain's failure comes first: that the world has ended may follow from it.
bool SimNetwork::admit(int rank, Tag tag, const PendingWorkPtr& work) {
  auto error = domains_[rank].failure_of(tag);
  if (!error) error = failure_->error();
  if (error) work->fail(*error);
  return !error;
}

/// work   of the step, which may have been kept nowhere yet; may be null.
void SimNetwork::attempt(const std::function<void()>& step, const PendingWorkPtr& work) {
  try {
    step();
  } catch (const Error& error) {
    fail_now(error);
    if (work) work->fail(*failure_->error());
  }
}

bool SimNetwork::has_flying_letters(int rank) const {
  return std::any_of(letters_.begin(), letters_.end(), [rank](const auto& entry) {
    return (entry.first.from == rank || entry.first.to == rank) && !entry.second.empty();
  });
}

void SimNetwork::Rank::write_letter(int peer, const Letter& letter) {
  const bool is_message =
      letter.kind == Letter::Kind::kMessage || letter.kind == Letter::Kind::kAnnouncement;
  const LetterRoute route{rank_, peer, letter.domain, !is_message, letter.label.tag};
  network_.letters_[route].push_back({letter, {letter.payload.begin(), letter.payload.end()}});
  network_.loop_.post([network = &network_, route] { network->arrive(route); },
                      network_.flight_time());
}

void SimNetwork::arrive(const LetterRoute& route) {
  const auto found = letters_.find(route);
  if (found == letters_.end()) return;  // the world has failed meanwhile
  FlyingLetter flying = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) letters_.erase(found);
  if (domains_[route.to].has_failed(route.domain)) return;
  flying.letter.payload = flying.payload;
  attempt([&] {
    const auto error = ranks_[route.to].matcher.arrive(route.from, flying.letter);
    if (error) fail_now(route.domain, *error);
  });
}

void SimNetwork::Rank::send_payload(int peer, Tag tag, PostedSend send) {
  const SimRoute route{rank_, peer, tag};
  network_.traffic_[route].posted.sends.push_back(std::move(send));
  network_.match(route);
}

void SimNetwork::Rank::recv_payload(int peer, Tag tag, PostedRecv recv) {
  const SimRoute route{peer, rank_, tag};
  network_.traffic_[route].posted.recvs.push_back(std::move(recv));
  network_.match(route);
}

}  // namespace trireme::transport::internal
