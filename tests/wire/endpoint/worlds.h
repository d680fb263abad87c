#pragma once

// The backends of the conformance tests: each makes worlds of any size. A new backend adds a name
// here, and the tests of transport and collectives run over it.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ofi_permit.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/endpoint/ofi/world.h"
#include "trireme/wire/endpoint/sim/world.h"
#include "trireme/wire/endpoint/tcp/world.h"

namespace trireme::transport::test {

enum class Backend : std::uint8_t {
  kSim,
  kSimDelays,
  kTcp,
  kTcpTinyBuffers,
  kSimShared,
  kLocal,
  kOfi,
  kOfiTinyPieces
};

inline constexpr std::array kBackends = {
    Backend::kSim,       Backend::kSimDelays, Backend::kTcp, Backend::kTcpTinyBuffers,
    Backend::kSimShared, Backend::kLocal,     Backend::kOfi, Backend::kOfiTinyPieces};

/// For the tests of rooms above: they learn nothing more from small buffers and pieces.
inline constexpr std::array kUsualBackends = {Backend::kSim,   Backend::kSimDelays,
                                              Backend::kTcp,   Backend::kSimShared,
                                              Backend::kLocal, Backend::kOfi};

inline std::string_view to_text(Backend backend) {
  constexpr std::array<std::string_view, 8> kNames = {
      "sim",        "sim_delays", "tcp", "tcp_tiny_buffers",
      "sim_shared", "local",      "ofi", "ofi_tiny_pieces"};
  return kNames.at(static_cast<std::size_t>(backend));
}

/// Why there are no worlds of `backend` here; empty where there are. libfabric is opened only for
/// those over it: that takes longer than most tests.
inline std::string why_absent(Backend backend) {
  if (backend != Backend::kOfi && backend != Backend::kOfiTinyPieces) return {};
  const auto& reason = why_no_ofi_test();
  return reason ? reason->message() : std::string();
}

/// Whether all ranks of its worlds can share memory.
constexpr bool shares_memory(Backend backend) {
  return backend == Backend::kSimShared || backend == Backend::kLocal;
}

// The name under which GoogleTest finds it.
inline void PrintTo(Backend backend, std::ostream* out) {  // NOLINT(readability-identifier-naming)
  *out << to_text(backend);
}

/// A test over a backend: skipped, with the reason, where that is absent.
class OverBackend : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_absent(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
};

using OnAbandon = std::function<void(const Error&)>;

/// Beyond the ranks: how they are connected.
struct TcpWorld {
  bool shares_memory = false;
  int socket_buffer_bytes = 0;
};

inline Endpoints make_tcp_world(int num_ranks, const TcpWorld& how = {},
                                const OnAbandon& on_abandon = nullptr) {
  const TestStore server;
  Endpoints endpoints(num_ranks);
  expect_no_errors(run_threads(num_ranks, [&](int rank) {
    TestClient store(server.address(), rank);
    endpoints[rank] = connect_tcp_world({.store = store,
                                         .rank = rank,
                                         .world_size = num_ranks,
                                         .deadline = std::chrono::seconds(20),
                                         .on_abandon = on_abandon,
                                         .shares_memory = how.shares_memory,
                                         .socket_buffer_bytes = how.socket_buffer_bytes});
    store.shutdown();
  }));
  return endpoints;
}

struct OfiWorld {
  std::size_t min_bytes;
  std::size_t max_piece_bytes = 128 << 20;
  bool shares_memory = false;
};

/// Over libfabric's tcp, which needs no hardware.
inline Endpoints make_ofi_world(int num_ranks, const OfiWorld& how) {
  const TestStore server;
  Endpoints endpoints(num_ranks);
  expect_no_errors(run_threads(num_ranks, [&](int rank) {
    TestClient store(server.address(), rank);
    endpoints[rank] = connect_ofi_world({.tcp = {.store = store,
                                                 .rank = rank,
                                                 .world_size = num_ranks,
                                                 .deadline = std::chrono::seconds(20),
                                                 .shares_memory = how.shares_memory},
                                         .provider = kOfiProvider,
                                         .min_bytes = how.min_bytes,
                                         .max_piece_bytes = how.max_piece_bytes});
    store.shutdown();
  }));
  return endpoints;
}

inline Endpoints make_world(Backend backend, int num_ranks) {
  switch (backend) {
    case Backend::kSim:
      return make_sim_world(num_ranks);
    case Backend::kSimDelays:
      return make_sim_world(
          num_ranks, {.seed = 1, .max_delay = std::chrono::milliseconds(1), .drop_percent = 5});
    case Backend::kTcp:
      return make_tcp_world(num_ranks);
    case Backend::kTcpTinyBuffers:
      return make_tcp_world(num_ranks, {.socket_buffer_bytes = 16 * 1024});
    case Backend::kSimShared:
      return make_sim_world(num_ranks, {.shares_memory = true});
    case Backend::kLocal:
      return make_tcp_world(num_ranks, {.shares_memory = true});
    case Backend::kOfi:
      return make_ofi_world(num_ranks, {.min_bytes = 16 * 1024});
    case Backend::kOfiTinyPieces:  // of all messages, so that every size has several
      return make_ofi_world(num_ranks, {.min_bytes = 1, .max_piece_bytes = 60 * 1000});
  }
  return {};
}

}  // namespace trireme::transport::test
