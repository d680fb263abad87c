#pragma once

// Ranks of a world as threads of a test.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/wire/transport/endpoint.h"

namespace trireme::transport::test {

using Endpoints = std::vector<std::unique_ptr<Endpoint>>;
using Errors = std::vector<std::optional<Error>>;

/// Runs `body(i)` for every i below `count`, each in a thread; what each threw.
inline Errors run_threads(int count, const std::function<void(int)>& body) {
  Errors errors(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (const Error& error) {
        errors[i] = error;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

/// As above, with the endpoint of each rank.
inline Errors run_ranks(Endpoints& endpoints, const std::function<void(Endpoint&)>& body) {
  return run_threads(static_cast<int>(endpoints.size()), [&](int rank) { body(*endpoints[rank]); });
}

inline void expect_no_errors(const Errors& errors) {
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    EXPECT_FALSE(errors[rank].has_value()) << "rank " << rank << ": " << errors[rank]->what();
  }
}

}  // namespace trireme::transport::test
