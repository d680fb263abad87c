// Channels in stream order, over the host's memory; channel_gpu_test.cc has that of GPUs.

#include "trireme/wire/collectives/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "tests/wire/collectives/group_world.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using transport::Endpoint;
using transport::test::error_of_call;
using transport::test::random_bytes;
using transport::test::wait_for;
using Bytes = std::vector<std::byte>;

/// Runs `body` on all ranks of a world; what each threw.
Errors run_world(Backend backend, int num_ranks, const std::function<void(Endpoint&)>& body) {
  Endpoints endpoints = transport::test::make_world(backend, num_ranks);
  return transport::test::run_ranks(endpoints, [&](Endpoint& endpoint) {
    body(endpoint);
    endpoint.shutdown(20s);
  });
}

class DeviceChannelTest : public transport::test::OverBackend {};

INSTANTIATE_TEST_SUITE_P(Backends, DeviceChannelTest,
                         testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

TEST_P(DeviceChannelTest, ARingOfThemMovesEveryMessageInOrder) {
  const std::vector<std::size_t> sizes = {0, 1, 4096, 300'001, 7, 2'000'000};
  transport::test::expect_no_errors(run_world(GetParam(), 3, [&](Endpoint& endpoint) {
    const int rank = endpoint.rank(), next = (rank + 1) % 3, before = (rank + 2) % 3;
    std::optional<DeviceChannel> out, in;
    for (int from = 0; from < 3; ++from) {
      const DeviceChannelOptions options{.id = 100U + from};
      if (from == rank) out.emplace(endpoint, rank, next, options);
      if (from == before) in.emplace(endpoint, before, rank, options);
    }
    EXPECT_EQ(out->peer(), next);
    EXPECT_EQ(in->peer(), before);
    std::vector<Bytes> sent, received;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sent.push_back(random_bytes(10 * rank + i, sizes[i]));
      received.emplace_back(sizes[i]);
    }
    std::vector<WorkPtr> works;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      works.push_back(out->send(sent[i]));
      works.push_back(in->recv(received[i]));
    }
    for (const WorkPtr& work : works) wait_for(work);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_TRUE(received[i] == random_bytes(10 * before + i, sizes[i])) << sizes[i];
    }
  }));
}

TEST_P(DeviceChannelTest, BothEndsLearnThatTheirMessagesDifferInSize) {
  const auto errors = run_world(GetParam(), 2, [](Endpoint& endpoint) {
    DeviceChannel channel(endpoint, 1, 0, {.id = 3});
    if (endpoint.rank() == 0) {
      Bytes data(200);
      wait_for(channel.recv(data));
    }
    // The sender learns it at its next message at the latest.
    const Bytes data(100);
    for (int i = 0; i < 2; ++i) wait_for(channel.send(data));
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error->what(), HasSubstr("channel 1 to 0"));
  }
}

TEST(DeviceChannel, HasOneDirection) {
  transport::test::expect_no_errors(run_world(Backend::kSim, 2, [](Endpoint& endpoint) {
    DeviceChannel channel(endpoint, 0, 1, {.id = 3});
    Bytes data(4);
    const Error error = error_of_call([&] {
      if (endpoint.rank() == 0) {
        channel.recv(data);
      } else {
        channel.send(data);
      }
    });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("at the wrong end of channel 0 to 1"));
  }));
}

TEST(DeviceChannel, IsOfTwoRanksOfWhichThisIsOne) {
  transport::test::expect_no_errors(run_world(Backend::kSim, 3, [](Endpoint& endpoint) {
    const int from = endpoint.rank() == 0 ? 1 : 2;
    const Error error = error_of_call([&] { DeviceChannel(endpoint, from, 2, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  }));
}

TEST(DeviceChannel, NamesWhoDoesNotTakeAMessageInTime) {
  std::promise<void> is_late;
  std::optional<Error> late;
  transport::test::expect_no_errors(run_world(Backend::kTcp, 2, [&](Endpoint& endpoint) {
    DeviceChannel channel(endpoint, 0, 1, {.id = 3, .deadline = 300ms});
    if (endpoint.rank() == 1) {
      is_late.get_future().wait_for(60s);
      return;
    }
    Bytes data(1 << 20);
    late = error_of_call([&] { wait_for(channel.send(data)); });
    is_late.set_value();
  }));
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->kind(), ErrorKind::kTimeout);
  EXPECT_THAT(late->what(), HasSubstr("rank 1"));
}

}  // namespace
}  // namespace trireme::collectives::test
