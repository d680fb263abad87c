#pragma once

// Groups over every backend of the transport's tests.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/wire/endpoint/worlds.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::collectives::test {

using transport::Endpoint;
using transport::WorkPtr;
using transport::test::Backend;
using transport::test::Endpoints;
using transport::test::Errors;

/// Limits of time hold for code at its own speed: under the thread sanitizer all takes longer.
#ifdef __SANITIZE_THREAD__
inline constexpr int kTimesSlower = 5;
#else
inline constexpr int kTimesSlower = 1;
#endif

inline std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Runs `body` on all ranks of a world, each with its part of one group; what each threw.
inline Errors run_group(Backend backend, int num_ranks, const std::function<void(Group&)>& body,
                        GroupOptions options = {.deadline = std::chrono::seconds(20)}) {
  options.name = "data";
  options.id = 1;
  Endpoints endpoints = transport::test::make_world(backend, num_ranks);
  return transport::test::run_ranks(endpoints, [&](Endpoint& endpoint) {
    {
      Group group(endpoint, first_ranks(num_ranks), options);
      body(group);
    }
    endpoint.shutdown(std::chrono::seconds(20));
  });
}

/// What the group fails with; a test failure where it does not within 5 s.
inline Error failure_soon(const Group& group) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (std::chrono::steady_clock::now() < limit) {
    if (const auto error = group.failure()) return *error;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ADD_FAILURE() << "the group has not failed";
  return Error(ErrorKind::kIo, "none");
}

}  // namespace trireme::collectives::test
