#pragma once

// Worlds whose ranks are processes with a GPU: they share the first, or have one each.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tests/wire/bootstrap/processes.h"
#include "trireme/base/cuda/memory.h"
#include "trireme/base/cuda/stream.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::collectives::test {

using Ready = std::function<void()>;

/// GPUs of this machine, by a process of its own: those forked from one that has used CUDA cannot.
inline int count_gpus_apart() {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(cuda::why_no_gpu() ? 0 : std::min(cuda::count_gpus(), 100));
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/// A group's part in a test, on `device`.
struct Part {
  Group& group;
  Device device;
  Stream& stream;

  std::span<std::byte> upload(std::span<const std::byte> bytes) const {
    const std::span<std::byte> memory = group.allocate(bytes.size());
    cuda::copy_bytes(memory, bytes, stream);
    return memory;
  }
  template <typename T>
  std::vector<T> download(std::span<const std::byte> memory) const {
    std::vector<T> host(memory.size() / sizeof(T));
    cuda::copy_bytes(std::as_writable_bytes(std::span(host)), memory, stream);
    stream.wait();
    return host;
  }
};

inline void require(bool is_so, const std::string& what) {
  if (!is_so) throw Error(ErrorKind::kCorruptData, what);
}

inline void wait_for(const transport::WorkPtr& work) {
  if (!work->wait_for(std::chrono::seconds(20))) throw Error(ErrorKind::kTimeout, "not done");
}

using PartBody = std::function<void(const Part&, const Ready&)>;

struct GpuWorld {
  int num_ranks = 2;
  int num_gpus = 1;  ///< Rank i has GPU i modulo this.
  Order order = Order::kCanonical;
  std::chrono::milliseconds deadline{20'000};
};

inline transport::test::RankBody on_gpus(const GpuWorld& world, const PartBody& body) {
  return [=](int rank, const transport::Address& address, const Ready& ready) {
    transport::test::TestClient store(address, rank);
    const auto endpoint = transport::connect_tcp_world(
        {.store = store, .rank = rank, .world_size = world.num_ranks, .shares_memory = true});
    const Device device{DeviceKind::kCuda, rank % world.num_gpus};
    const auto stream = make_stream(device);
    std::vector<int> ranks(world.num_ranks);
    std::iota(ranks.begin(), ranks.end(), 0);
    GroupOptions options;
    options.name = "gpus";
    options.id = 1;
    options.deadline = world.deadline;
    options.order = world.order;
    options.device = device;
    options.stream = stream.get();
    {
      Group group(*endpoint, ranks, options);
      body({group, device, *stream}, ready);
    }
    endpoint->shutdown(std::chrono::seconds(20));
  };
}

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    gpu_count = count_gpus_apart();
    if (gpu_count == 0) GTEST_SKIP() << "no GPU here";
  }

  static void expect_all_end_well(const GpuWorld& world, const PartBody& body) {
    transport::test::RankProcesses processes(world.num_ranks, on_gpus(world, body));
    const transport::test::TestStore server;
    processes.meet_at(server.address());
    for (int rank = 0; rank < world.num_ranks; ++rank) {
      EXPECT_EQ(processes.line_from(rank), "ended well") << "rank " << rank;
    }
  }

  int gpu_count = 0;
};

}  // namespace trireme::collectives::test
