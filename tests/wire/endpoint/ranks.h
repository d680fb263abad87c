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

#include "tests/wire/system/threads.h"
#include "trireme/error.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::transport::test {

using Endpoints = std::vector<std::unique_ptr<Endpoint>>;

/// Runs `body` for every rank, each in a thread; what each threw.
inline Errors run_ranks(Endpoints& endpoints, const std::function<void(Endpoint&)>& body) {
  return run_threads(static_cast<int>(endpoints.size()), [&](int rank) { body(*endpoints[rank]); });
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

}  // namespace trireme::transport::test
