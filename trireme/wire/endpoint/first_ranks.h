#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::transport {

/// The first ranks of a world as a world of their own, for those that have nothing to do with the others. They fail together
/// with the whole world; who ends that in order ends this.
class FirstRanks final : public Endpoint {
 public:
  /// all         outlives this; its rank is one of the first.
  /// num_ranks   1 to those of `all`.
  FirstRanks(Endpoint& all, int num_ranks) : all_(all), num_ranks_(num_ranks) {}

  using Endpoint::recv;
  using Endpoint::send;

  int rank() const override { return all_.rank(); }
  int world_size() const override { return num_ranks_; }

  WorkPtr send(int peer, Tag tag, std::span<const std::byte> data,
               const Envelope& envelope) override {
    require_one_of_them(peer);
    return all_.send(peer, tag, data, envelope);
  }
  WorkPtr recv(int peer, Tag tag, Placement place, Inspection inspect) override {
    require_one_of_them(peer);
    return all_.recv(peer, tag, std::move(place), std::move(inspect));
  }

  Notes& notes() override { return all_.notes(); }
  Domains& domains() override { return all_.domains(); }
  Messages& messages() override { return all_.messages(); }
  std::uint64_t count_use(std::uint64_t key) override { return all_.count_use(key); }
  void poison(const Error& error) override { all_.poison(error); }
  LocalPeers& local_peers() override { return all_.local_peers(); }
  std::string path() const override { return all_.path(); }
  std::shared_ptr<Failure> shared_failure() const override { return all_.shared_failure(); }
  void shutdown(std::chrono::milliseconds deadline) override { all_.shutdown(deadline); }

 private:
  void require_one_of_them(int peer) const {
    if (peer < num_ranks_) return;
    throw Error(ErrorKind::kInvalidArgument, "there is no rank " + std::to_string(peer) +
                                                 " among the first " + std::to_string(num_ranks_));
  }

  Endpoint& all_;
  int num_ranks_;
};

}  // namespace trireme::transport
