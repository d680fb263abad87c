#pragma once

// Ranks of a world as threads of a test.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
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

/// Bytes that differ between seeds.
inline std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Placement that makes `memory` as large as the message.
inline Placement into(std::vector<std::byte>& memory) {
  return [&memory](std::size_t bytes) {
    memory.resize(bytes);
    return std::span(memory);
  };
}

/// Waits as long as a test may take.
inline void wait_for(const WorkPtr& work) {
  if (!work->wait_for(std::chrono::seconds(20))) throw Error(ErrorKind::kTimeout, "not done");
}

/// The error that ends `work`; a test failure where there is none within 20 s.
inline Error error_of(const WorkPtr& work) {
  try {
    const bool has_ended = work->wait_for(std::chrono::seconds(20));
    ADD_FAILURE() << (has_ended ? "the work ended well" : "the work did not end");
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kTimeout, "no error");
}

/// The error that `call` throws; a test failure where it throws none.
inline Error error_of_call(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::kTimeout, "no error");
}

}  // namespace trireme::transport::test
