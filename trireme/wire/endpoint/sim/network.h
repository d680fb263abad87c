#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "trireme/wire/endpoint/matcher.h"
#include "trireme/wire/endpoint/sim/world.h"
#include "trireme/wire/system/thread.h"

namespace trireme::transport::internal {

/// One thread that runs functions at their times, those of one time in the order given.
///
/// Threads  safe from any thread.
class SimLoop {
 public:
  using Clock = std::chrono::steady_clock;

  SimLoop();
  ~SimLoop();  ///< Functions not run yet are dropped.

  void post(std::function<void()> function, Clock::duration delay = {});

  /// As `post`, and blocks until it was run. Not from a function of the loop.
  void run(const std::function<void()>& function);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, std::function<void()>> functions_;
  bool is_stopping_ = false;
  LibraryThread thread_;  // last: it uses the others
};

/// Where messages of one (sender, receiver, tag) go.
struct SimRoute {
  int from;
  int to;
  Tag tag;
  auto operator<=>(const SimRoute&) const = default;
};

/// What the ranks of a SimWorld share.
///
/// Public functions are safe from any thread; all state is confined to the loop.
class SimNetwork {
 public:
  SimNetwork(int num_ranks, SimOptions options);

  int num_ranks() const { return num_ranks_; }
  const std::shared_ptr<Failure>& failure() const { return failure_; }

  WorkPtr send(const SimRoute& route, std::span<const std::byte> data, const Envelope& envelope);
  WorkPtr recv(const SimRoute& route, Placement place, Inspection inspect);

  /// What `rank` has heard.
  NoteBoard& notes(int rank) { return notes_[rank]; }

  /// Of a rank, once; none where memory is not shared.
  std::map<int, Descriptor> take_local_sockets(int rank);
  std::vector<int> hosts() const;

  /// Ends the world for all; returns when all works have ended.
  void fail(const Error& error);

  /// The domains that `rank` has opened.
  DomainBoard& domains(int rank) { return domains_[rank]; }
  void close(int rank, Tag first_tag);

  /// Ends a domain for all its ranks; returns when its works have ended.
  void fail(Tag first_tag, const Error& error);

  // As Messages of `rank`.
  WorkPtr send(int rank, const MessageToSend& message);
  RecvWorkPtr recv(int rank, const MessageToReceive& message);
  bool cancel(int rank, const RecvWorkPtr& work);
  std::vector<WaitingMessage> waiting(int rank, Tag domain);

  /// The rank's endpoint is gone: a loss, unless it said goodbye before.
  void close(int rank);

  /// A work that ends when every rank has called this.
  WorkPtr say_goodbye(int rank, std::chrono::milliseconds deadline);

 private:
  /// Messages on one route. A timer takes the oldest one that flies, so that order is kept whatever
  /// the delays are.
  struct Traffic {
    PostedMessages posted;
    std::deque<std::pair<PostedSend, PostedRecv>> flying;
  };

  /// Letters of one order.
  struct LetterRoute {
    int from;
    int to;
    Tag domain;
    bool is_answer;     ///< A grant or an allowance.
    std::uint64_t tag;  ///< Of a message.
    auto operator<=>(const LetterRoute&) const = default;
  };
  struct FlyingLetter {
    Letter letter;  ///< But its payload.
    std::vector<std::byte> payload;
  };
  /// A rank's way to the others, and which of its recvs takes what.
  class Rank final : public MatcherLink {
   public:
    Rank(SimNetwork& network, int rank)
        : matcher(rank, *this, network.domains(rank)), network_(network), rank_(rank) {}

    void write_letter(int peer, const Letter& letter) override;
    void send_payload(int peer, Tag tag, PostedSend send) override;
    void recv_payload(int peer, Tag tag, PostedRecv recv) override;
    bool has_gone(int peer) const override { return network_.gone_.contains(peer); }

    Matcher matcher;

   private:
    SimNetwork& network_;
    const int rank_;
  };

  void arrive(const LetterRoute& route);
  bool admit(int rank, Tag tag, const PendingWorkPtr& work);
  void attempt(const std::function<void()>& step, const PendingWorkPtr& work = nullptr);
  bool has_flying_letters(int rank) const;
  static void take_works(Traffic& traffic, std::vector<PendingWorkPtr>& works);
  bool admit(const SimRoute& route, const PendingWorkPtr& work);
  void match(const SimRoute& route);
  std::chrono::microseconds flight_time();
  void arrive(const SimRoute& route);
  void fail_now(const Error& error);
  void fail_now(Tag first_tag, const Error& error);
  void hear_goodbye(int rank, const PendingWorkPtr& work, std::chrono::milliseconds deadline);
  void give_up_goodbye(int rank, const PendingWorkPtr& work, std::chrono::milliseconds deadline);

  const int num_ranks_;
  std::vector<std::map<int, Descriptor>> local_sockets_;  ///< By rank, until taken.
  const SimOptions options_;
  const std::shared_ptr<Failure> failure_;  // shared with the works
  std::mt19937_64 random_;
  std::vector<NoteBoard> notes_;     ///< By rank.
  std::deque<DomainBoard> domains_;  ///< By rank.
  std::map<SimRoute, Traffic> traffic_;
  std::deque<Rank> ranks_;
  std::map<LetterRoute, std::deque<FlyingLetter>> letters_;
  std::set<int> gone_;                    ///< Ranks that said goodbye.
  std::vector<PendingWorkPtr> goodbyes_;  ///< Works that wait for the other ranks' goodbye.
  SimLoop loop_;                          // last: its thread uses the others
};

}  // namespace trireme::transport::internal
