#pragma once

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "trireme/wire/transport/posted.h"
#include "trireme/wire/transport/sim/loop.h"
#include "trireme/wire/transport/sim/world.h"

namespace trireme::transport::internal {

/// Where messages of one (sender, receiver, tag) go.
struct Route {
  int from;
  int to;
  Tag tag;
  auto operator<=>(const Route&) const = default;
};

/// What the ranks of a SimWorld share.
///
/// Public functions are safe from any thread; all state is confined to the loop.
class SimNetwork {
 public:
  SimNetwork(int num_ranks, SimOptions options);

  int num_ranks() const { return num_ranks_; }
  const std::shared_ptr<Failure>& failure() const { return failure_; }

  WorkPtr send(const Route& route, std::span<const std::byte> data, const Envelope& envelope);
  WorkPtr recv(const Route& route, Placement place, Inspection inspect);

  /// What `rank` has heard.
  NoteBoard& notes(int rank) { return notes_[rank]; }

  /// Of a rank, once; none where memory is not shared.
  std::map<int, Descriptor> take_local_sockets(int rank);
  std::vector<int> hosts() const;

  /// Ends the world for all; returns when all works have ended.
  void fail(const Error& error);

  /// The domains that `rank` has opened.
  DomainBoard& domains(int rank) { return domains_[rank]; }

  /// Ends a domain for all its ranks; returns when its works have ended.
  void fail(Tag first_tag, const Error& error);

  /// The rank's endpoint is gone: a loss, unless it said goodbye before.
  void close(int rank);

  /// A work that ends when every rank has called this.
  WorkPtr say_goodbye(int rank, std::chrono::milliseconds deadline);

 private:
  /// Messages on one route. A timer takes the oldest one that flies, so that order is kept whatever
  /// the delays are.
  struct Traffic {
    Stream posted;
    std::deque<std::pair<PostedSend, PostedRecv>> flying;
  };

  static void take_works(Traffic& traffic, std::vector<PendingWorkPtr>& works);
  bool admit(const Route& route, const PendingWorkPtr& work);
  void match(const Route& route);
  std::chrono::microseconds flight_time();
  void arrive(const Route& route);
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
  std::map<Route, Traffic> traffic_;
  std::set<int> gone_;                    ///< Ranks that said goodbye.
  std::vector<PendingWorkPtr> goodbyes_;  ///< Works that wait for the other ranks' goodbye.
  SimLoop loop_;                          // last: its thread uses the others
};

}  // namespace trireme::transport::internal
