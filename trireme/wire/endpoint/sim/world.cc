#include "trireme/wire/endpoint/sim/world.h"

#include <string>
#include <utility>

#include "trireme/wire/endpoint/sim/network.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::transport {
namespace {

class SimEndpoint final : public Endpoint, private Notes, private Domains, private Messages {
 public:
  SimEndpoint(std::shared_ptr<internal::SimNetwork> network, int rank)
      : network_(std::move(network)),
        rank_(rank),
        local_peers_(network_->take_local_sockets(rank), network_->hosts()) {}
  ~SimEndpoint() override { network_->close(rank_); }

  int rank() const override { return rank_; }
  int world_size() const override { return network_->num_ranks(); }

  WorkPtr send(int peer, Tag tag, std::span<const std::byte> data,
               const Envelope& envelope) override {
    check_peer(peer, *this);
    return network_->send({rank_, peer, tag}, data, envelope);
  }

  WorkPtr recv(int peer, Tag tag, Placement place, Inspection inspect) override {
    check_peer(peer, *this);
    return network_->recv({peer, rank_, tag}, std::move(place), std::move(inspect));
  }

  LocalPeers& local_peers() override { return local_peers_; }
  std::string path() const override { return "sim"; }
  Notes& notes() override { return *this; }
  Domains& domains() override { return *this; }
  Messages& messages() override { return *this; }

  void poison(const Error& error) override {
    Error named = flattened(error);
    network_->fail(named.add({.rank = rank_}));
  }

  std::shared_ptr<Failure> shared_failure() const override { return network_->failure(); }

  void shutdown(std::chrono::milliseconds deadline) override {
    network_->say_goodbye(rank_, deadline)->wait_for(std::chrono::milliseconds::max());
  }

 private:
  std::shared_ptr<Failure> open(const Domain& domain) override {
    return network_->domains(rank_).open(domain);
  }
  void close(Tag first_tag) override { network_->close(rank_, first_tag); }
  void fail(Tag first_tag, const Error& error) override {
    Error named = flattened(error);
    network_->fail(first_tag, named.add({.rank = rank_}));
  }

  WorkPtr send(const MessageToSend& message) override {
    check_peer(message.peer, *this);
    return network_->send(rank_, message);
  }
  RecvWorkPtr recv(const MessageToReceive& message) override {
    if (message.source != kAnySource) check_peer(message.source, *this);
    return network_->recv(rank_, message);
  }
  bool cancel(const RecvWorkPtr& work) override { return network_->cancel(rank_, work); }
  std::vector<WaitingMessage> waiting(Tag domain) override {
    return network_->waiting(rank_, domain);
  }

  void tell(int peer, Tag tag, const Envelope& note) override {
    check_peer(peer, *this);
    network_->notes(peer).put(rank_, tag, note);
  }

  std::optional<Envelope> heard(int peer, Tag tag) const override {
    return network_->notes(rank_).get(peer, tag);
  }

  bool has_left(int peer) const override { return network_->notes(rank_).has_left(peer); }

  const std::shared_ptr<internal::SimNetwork> network_;  // shared by the endpoints of the world
  const int rank_;
  LocalPeers local_peers_;
};

}  // namespace

SimWorld::SimWorld(int num_ranks, SimOptions options)
    : network_(std::make_shared<internal::SimNetwork>(num_ranks, options)) {}

std::unique_ptr<Endpoint> SimWorld::make_endpoint(int rank) {
  return std::make_unique<SimEndpoint>(network_, rank);
}

void SimWorld::kill(int rank) { network_->fail(lost_rank(rank, "it was killed")); }

std::vector<std::unique_ptr<Endpoint>> make_sim_world(int num_ranks, SimOptions options) {
  SimWorld world(num_ranks, options);
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  for (int rank = 0; rank < num_ranks; ++rank) endpoints.push_back(world.make_endpoint(rank));
  return endpoints;
}

}  // namespace trireme::transport
