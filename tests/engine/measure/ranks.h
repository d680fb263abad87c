#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "trireme/engine/measure/measurement.h"
#include "trireme/error.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::measure {

/// Runs `body` as every rank of a world of threads; throws what one of them threw.
inline void run_ranks(int num_ranks, std::chrono::milliseconds deadline,
                      const std::function<void(transport::Endpoint&, const BusyRanks&)>& body) {
  const auto endpoints = transport::make_sim_world(num_ranks);
  std::vector<int> members(static_cast<std::size_t>(num_ranks));
  std::iota(members.begin(), members.end(), 0);
  std::exception_ptr failure;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (const auto& endpoint : endpoints) {
    threads.emplace_back([&, endpoint = endpoint.get()] {
      try {
        collectives::Group group(*endpoint, members, {.name = "all", .deadline = deadline});
        body(*endpoint, BusyRanks(group, {.deadline = deadline}));
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        endpoint->poison(Error(ErrorKind::kCancelled, error.what()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

inline void run_ranks(int num_ranks,
                      const std::function<void(transport::Endpoint&, const BusyRanks&)>& body) {
  run_ranks(num_ranks, std::chrono::minutes(5), body);
}

}  // namespace trireme::measure
