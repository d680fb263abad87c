// One rank of Gloo as torch ships it (c10d::ProcessGroupGloo), for `trireme bench wire`.
//
//   gloo_peer FOLDER RANK RANKS      FOLDER: pipes of the ranks, and the file where they meet
//
// The network is the interface that GLOO_SOCKET_IFNAME names, else the loopback.

#include <ATen/ATen.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "benchmarks/wire/rank_loop.h"
#include "trireme/wire/system/thread.h"

namespace trireme::bench {
namespace {

at::Tensor view(std::span<std::byte> bytes, Dtype dtype) {
  const auto type = dtype == Dtype::kF32 ? at::kFloat : at::kDouble;
  return at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size() / size_bytes(dtype))},
                       at::TensorOptions(type));
}

class GlooContender final : public Contender {
 public:
  GlooContender(const std::string& folder, int rank, int num_ranks)
      : rank_(rank), num_ranks_(num_ranks) {
    const auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::minutes(5));
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
    options->devices.push_back(interface != nullptr
                                   ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                   : c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    const auto store = c10::make_intrusive<c10d::FileStore>(folder + "/gloo_store", num_ranks);
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, num_ranks, options);
  }

  int rank() const override { return rank_; }
  int num_ranks() const override { return num_ranks_; }

  std::optional<Prepared> prepare(const Case& one, const Buffers& buffers) override {
    if (one.dtype != Dtype::kF32 && one.dtype != Dtype::kF64) return std::nullopt;
    const bool is_in_place = buffers.recv.empty();
    const auto start = starter(one, view(buffers.send, one.dtype), view(buffers.recv, one.dtype));
    return Prepared{.run = [start] { start()->wait(); },
                    .run_beside_sleep =
                        [start](std::chrono::microseconds sleep) {
                          const auto work = start();
                          std::this_thread::sleep_for(sleep);
                          work->wait();
                        },
                    .result = is_in_place ? buffers.send : buffers.recv,
                    .first = one.operation == Collective::kReduceScatter
                                 ? one.count() / num_ranks_ * rank_
                                 : 0};
  }

  std::optional<std::span<std::byte>> registered(std::size_t) override { return std::nullopt; }

  void barrier() override { group().barrier({})->wait(); }

 private:
  c10d::Backend& group() { return *group_; }

  using Start = std::function<c10::intrusive_ptr<c10d::Work>()>;

  Start starter(const Case& one, at::Tensor send, at::Tensor recv) {
    using Tensors = std::vector<at::Tensor>;
    switch (one.operation) {
      case Collective::kAllReduce:
        return [this, tensors = Tensors{send}]() mutable { return group().allreduce(tensors); };
      case Collective::kReduceScatter:
        return [this, send, recv]() mutable { return group()._reduce_scatter_base(recv, send); };
      case Collective::kAllGather:
        return [this, send, recv]() mutable { return group()._allgather_base(recv, send); };
      case Collective::kAllToAll:
        return [this, send, recv, even = std::vector<std::int64_t>()]() mutable {
          return group().alltoall_base(recv, send, even, even);
        };
      case Collective::kBroadcast:
        return [this, tensors = Tensors{send}]() mutable { return group().broadcast(tensors); };
      default:
        return [this] { return group().barrier({}); };
    }
  }

  int rank_;
  int num_ranks_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

}  // namespace
}  // namespace trireme::bench

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s FOLDER RANK RANKS; `trireme bench wire` starts it\n", argv[0]);
    return 2;
  }
  try {
    const int rank = std::stoi(argv[2]);
    const int num_ranks = std::stoi(argv[3]);
    if (std::getenv("GLOO_SOCKET_IFNAME") == nullptr) {  // all on this host, as ours
      trireme::transport::take_cores(rank, num_ranks);
    }
    trireme::bench::GlooContender contender(argv[1], rank, num_ranks);
    trireme::bench::take_orders(argv[1], contender);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo_peer: rank %s: %s\n", argv[2], error.what());
    return 1;
  }
}
