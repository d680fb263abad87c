#pragma once

// A rank that the test itself plays, byte by byte, against a real one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tests/wire/bootstrap/stores.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/wire/bootstrap/admission.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/endpoint/tcp/frame.h"
#include "trireme/wire/endpoint/tcp/hello.h"
#include "trireme/wire/endpoint/tcp/world.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport::test {

/// Everything until the connection's end or `count` bytes.
inline std::vector<std::byte> read_bytes(const Descriptor& socket, std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::size_t done = 0;
  while (done < count &&
         wait_readable(socket, std::chrono::steady_clock::now() + std::chrono::seconds(5))) {
    const auto more = read_some(socket, std::span(bytes).subspan(done));
    if (!more) break;
    done += *more;
  }
  bytes.resize(done);
  return bytes;
}

/// The header that comes next. Throws kCorruptData where none does.
inline internal::Frame next_frame(const Descriptor& socket) {
  const std::vector<std::byte> bytes = read_bytes(socket, internal::kHeaderBytes);
  internal::FrameHeader header{};
  std::copy(bytes.begin(), bytes.end(), header.begin());
  return internal::parse_frame(header);
}

/// A connection that has proved nothing.
inline Descriptor knock_at_rank_0(StoreClient& store) {
  const std::string published = store.get("world/address/0", std::chrono::seconds(20));
  return connect_to(parse_address(published.substr(0, published.find(' '))), {});
}

/// A connection of the job that has not said which rank it is.
inline Descriptor connect_to_rank_0(StoreClient& store) {
  Descriptor socket = knock_at_rank_0(store);
  EXPECT_TRUE(enter(socket, store.token(), "rank", "rank 0",
                    wait_until(std::chrono::steady_clock::now() + std::chrono::seconds(5), "it")));
  return socket;
}

/// What `rank` would publish, for a fake one. fabric: as tcp/mesh.h has it.
inline void publish(StoreClient& store, int rank, const std::string& fabric = "") {
  store.set("world/address/" + std::to_string(rank),
            fabric.empty() ? "127.0.0.1:1" : "127.0.0.1:1 " + fabric);
  store.set("world/host/" + std::to_string(rank), "none ");
}

/// Says hello to rank 0 as `hello`, whose world id is filled in; the answer.
inline internal::Hello say_hello(StoreClient& store, const Descriptor& socket,
                                 internal::Hello hello) {
  hello.world_id = std::stoull(store.get("world/id", std::chrono::seconds(20)));
  write_some(socket, to_bytes(hello));
  const std::vector<std::byte> answer = read_bytes(socket, sizeof(internal::HelloBytes));
  internal::HelloBytes bytes{};
  std::copy(answer.begin(), answer.end(), bytes.begin());
  return internal::parse_hello(bytes);
}

/// Rank 0 of a world of two, whose rank 1 is the test itself.
class FakePeer : public testing::Test {
 protected:
  using Connect = std::function<std::unique_ptr<Endpoint>(const TcpOptions&)>;

  /// connect   how rank 0 does it. fabric: what rank 1 publishes of its own.
  explicit FakePeer(const Connect& connect = connect_tcp_world, const std::string& fabric = "")
      : store(server.address(), 1) {
    auto rank_0 = std::async(std::launch::async, [&] {
      TestClient own_store(server.address(), 0);
      auto result =
          connect({.store = own_store, .rank = 0, .world_size = 2, .shares_memory = false});
      own_store.shutdown();
      return result;
    });
    publish(store, 1, fabric);
    socket = connect_to_rank_0(store);
    EXPECT_EQ(say_hello(store, socket, {.rank = 1, .world_size = 2}).welcome,
              internal::Welcome::kYes);
    endpoint = rank_0.get();
    work = endpoint->recv(1, 5, into(memory));
    read_bytes(socket, internal::kHeaderBytes);  // its credit
  }

  void send(internal::Frame frame, std::span<const std::byte> payload = {}) {
    frame.payload_bytes = payload.size();
    write_some(socket, internal::to_bytes(frame));
    write_some(socket, payload);
  }

  /// The endpoint calls rank 1 corrupt, tells it so and ends the connection.
  void expect_corrupt(const std::string& problem) {
    const Error error = error_of(work);
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    EXPECT_THAT(error.message(), testing::HasSubstr("rank 1 sent what cannot be read"));
    EXPECT_THAT(error.message(), testing::HasSubstr(problem));
    EXPECT_EQ(error.context().peer, 1);
    EXPECT_LT(read_bytes(socket, 100'000).size(), 100'000U);
  }

  const TestStore server;
  TestClient store;
  Descriptor socket;
  std::unique_ptr<Endpoint> endpoint;
  std::vector<std::byte> memory;
  WorkPtr work;
};

}  // namespace trireme::transport::test
