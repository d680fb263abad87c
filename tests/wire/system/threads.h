#pragma once

// Threads of a test, and what they throw.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "trireme/error.h"

namespace trireme::transport::test {

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

inline void expect_no_errors(const Errors& errors) {
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    EXPECT_FALSE(errors[rank].has_value()) << "rank " << rank << ": " << errors[rank]->what();
  }
}

/// Bytes that differ between seeds.
inline std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::size_t begin = 0; begin < count; begin += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + begin, &word, std::min(sizeof word, count - begin));
  }
  return bytes;
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
