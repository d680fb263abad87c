#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "trireme/engine/train/rank_session.h"
#include "trireme/error.h"
#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::train {

/// Runs `body` as every rank of a world, each a thread; throws what failed first. A rank that fails
/// takes the others down with it, so nothing hangs.
inline void run_ranks(int num_ranks, const std::function<void(const collectives::World&)>& body) {
  auto endpoints = transport::make_sim_world(num_ranks, {.seed = 1});
  std::once_flag has_failed;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const collectives::World world{
          *endpoints[rank],
          {.deadline = std::chrono::seconds(60), .logger = Logger(LogLevel::kOff)}};
      try {
        body(world);
      } catch (const std::exception& failure) {
        std::call_once(has_failed, [&] { first = std::current_exception(); });
        world.endpoint.poison(Error(ErrorKind::kCancelled, "another rank failed", failure));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace trireme::train
