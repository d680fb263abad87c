// Messages between two ranks of a group: tags, types, sizes, any source, withdrawn recvs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/wire/collectives/group_world.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using transport::kAnySource;
using transport::Messages;
using transport::RecvWorkPtr;
using transport::test::error_of;
using transport::test::expect_no_errors;
using transport::test::make_world;
using transport::test::random_bytes;
using transport::test::run_ranks;
using transport::test::wait_for;
using Bytes = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kSmall = 100;
constexpr std::size_t kLarge = 300'000;  // beyond what is copied, and what is read in the process

class GroupMessages : public transport::test::OverBackend {
 protected:
  static void run(int num_ranks, const std::function<void(Group&)>& body) {
    expect_no_errors(run_group(GetParam(), num_ranks, body));
  }

  /// A pair whose group may fail, and one that goes on.
  static void run_failing(const std::function<void(Group& pair, Group& other)>& body,
                          std::chrono::milliseconds deadline = 20s) {
    Endpoints endpoints = make_world(GetParam(), 2);
    expect_no_errors(run_ranks(endpoints, [&](Endpoint& endpoint) {
      {
        Group other(endpoint, {0, 1}, {.name = "other", .id = 4});
        std::optional<Group> pair;
        pair.emplace(endpoint, std::vector{0, 1},
                     GroupOptions{.name = "pair", .id = 5, .deadline = deadline});
        wait_for(other.barrier());  // both have made theirs
        body(*pair, other);
        pair.reset();
        wait_for(other.barrier());
      }
      EXPECT_FALSE(endpoint.failure());
      endpoint.shutdown(20s);
    }));
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, GroupMessages,
                         testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

TEST_P(GroupMessages, AreTakenByTag) {
  run(2, [](Group& group) {
    for (const std::size_t bytes : {std::size_t{0}, kSmall, Messages::kMaxEager, kLarge}) {
      std::vector<Bytes> sent, received(3, Bytes(bytes));
      std::vector<WorkPtr> works;
      for (std::uint64_t tag = 0; tag < 3; ++tag) {
        sent.push_back(random_bytes(tag, bytes));
        if (group.group_rank() == 0) works.push_back(group.send(1, sent[tag], {.tag = tag}));
      }
      for (const std::uint64_t tag : {2, 0, 1}) {
        if (group.group_rank() == 1) wait_for(group.recv(0, received[tag], {.tag = tag}));
      }
      for (const WorkPtr& work : works) wait_for(work);
      if (group.group_rank() == 1) {
        EXPECT_EQ(received, sent) << bytes;
      }
    }
  });
}

// A later message filled the gap of one that was left out: silently, with another's bytes.
TEST_P(GroupMessages, AnOmittedOneIsNotReplacedByALaterOne) {
  run_failing(
      [](Group& pair, Group&) {
        int number = 9001;
        const auto bytes = std::as_writable_bytes(std::span(&number, 1));
        if (pair.group_rank() == 0) {
          wait_for(pair.send(1, bytes, {.tag = 2, .dtype = Dtype::kI32}));
          failure_soon(pair);
          return;
        }
        number = 51;
        const Error error = error_of(pair.recv(0, bytes, {.tag = 1, .dtype = Dtype::kI32}));
        EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
        EXPECT_THAT(error.message(), HasSubstr("waited 300 ms for rank 0"));
        EXPECT_THAT(error.message(), HasSubstr("a recv with tag 1"));
        EXPECT_THAT(error.message(), HasSubstr("4 bytes of rank 0 with tag 2"));
        EXPECT_EQ(number, 51);
      },
      300ms);
}

TEST_P(GroupMessages, OfAnotherTypeOrSizeEndTheGroupOnBothSides) {
  struct Case {
    std::size_t bytes, room;
    Dtype sent, expected;
    bool may_be_shorter;
    std::string text;
  };
  const Case cases[] = {
      {8, 8, Dtype::kF32, Dtype::kI32, false, "8 bytes of f32, its recv gave memory for 8 bytes"},
      {8, 4, Dtype::kF32, Dtype::kF32, false, "its recv gave memory for 4 bytes of f32"},
      {8, 4, Dtype::kF32, Dtype::kF32, true, "its recv gave memory for at most 4 bytes of f32"},
      {4, 8, Dtype::kF32, Dtype::kF32, false, "4 bytes of f32, its recv gave memory for 8 bytes"},
      {kLarge, 2 * kLarge, Dtype::kU8, Dtype::kU8, false, "300000 bytes of u8"},
      {kLarge, kLarge, Dtype::kU8, Dtype::kBool, true, "at most 300000 bytes of bool"}};
  for (const Case& one : cases) {
    run_failing([&](Group& pair, Group&) {
      Bytes memory(one.room, std::byte{1});
      const Bytes data(one.bytes);
      WorkPtr send;
      if (pair.group_rank() == 0) {
        send = pair.send(1, data, {.tag = 3, .dtype = one.sent});
      } else {
        const Error error = error_of(pair.recv(
            0, memory, {.tag = 3, .dtype = one.expected, .may_be_shorter = one.may_be_shorter}));
        EXPECT_EQ(memory, Bytes(one.room, std::byte{1}));
        EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      }
      const Error error = failure_soon(pair);
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.message(), HasSubstr("a message of rank 0 with tag 3 has"));
      EXPECT_THAT(error.message(), HasSubstr(one.text));
      EXPECT_EQ(error.context().peer, 0);
      EXPECT_EQ(error.context().rank, 1);  // which has refused it
    });
  }
}

TEST_P(GroupMessages, MayBeShorterWhereTheRecvSaysSo) {
  run(2, [](Group& group) {
    for (const std::size_t bytes : {std::size_t{0}, kSmall, kLarge}) {
      const Bytes sent = random_bytes(bytes, bytes);
      Bytes memory(bytes + 4, std::byte{1});
      if (group.group_rank() == 0) {
        wait_for(group.send(1, sent));
      } else {
        const RecvWorkPtr recv = group.recv(0, memory, {.may_be_shorter = true});
        wait_for(recv);
        EXPECT_EQ(group.received(*recv).bytes, bytes);
        EXPECT_TRUE(std::equal(sent.begin(), sent.end(), memory.begin()));
        EXPECT_EQ(memory[bytes], std::byte{1});
      }
    }
  });
}

// Of small messages, both could wait for each other to receive.
TEST_P(GroupMessages, SmallSendsEndBeforeTheirRecv) {
  run(2, [](Group& group) {
    const int peer = 1 - group.group_rank();
    const Bytes sent = random_bytes(group.group_rank(), Messages::kMaxEager);
    Bytes received(sent.size());
    wait_for(group.send(peer, sent));
    wait_for(group.barrier());
    wait_for(group.recv(peer, received));
    EXPECT_EQ(received, random_bytes(peer, received.size()));
  });
}

// What nobody has asked for is bounded at the receiver: the sender keeps the rest.
TEST_P(GroupMessages, SendersKeepWhatIsBeyondTheirAllowance) {
  run(2, [](Group& group) {
    constexpr int kCount = 3 * static_cast<int>(Messages::kMaxWaiting);
    std::vector<int> numbers(kCount);
    std::vector<WorkPtr> works;
    const auto bytes = [&](int i) { return std::as_writable_bytes(std::span(&numbers[i], 1)); };
    if (group.group_rank() == 0) {
      std::iota(numbers.begin(), numbers.end(), 0);
      for (int i = 0; i < kCount; ++i) works.push_back(group.send(1, bytes(i)));
      wait_for(works[Messages::kMaxWaiting - 1]);
      EXPECT_FALSE(works.back()->wait_for(20ms));
    }
    wait_for(group.barrier());
    if (group.group_rank() == 1) {
      for (int i = 0; i < kCount; ++i) wait_for(group.recv(0, bytes(i)));
      for (int i = 0; i < kCount; ++i) EXPECT_EQ(numbers[i], i);
    }
    for (const WorkPtr& work : works) wait_for(work);
  });
}

TEST_P(GroupMessages, RecvsMayBeWithdrawn) {
  run(2, [](Group& group) {
    Bytes withdrawn(kSmall), memory(kSmall);
    const Bytes sent = random_bytes(1, kSmall);
    if (group.group_rank() == 1) {
      const RecvWorkPtr recv = group.recv(0, withdrawn);
      EXPECT_TRUE(group.cancel(recv));
      EXPECT_EQ(error_of(recv).kind(), ErrorKind::kCancelled);
      EXPECT_FALSE(group.cancel(recv));
    }
    wait_for(group.barrier());
    if (group.group_rank() == 0) return wait_for(group.send(1, sent));
    const RecvWorkPtr recv = group.recv(0, memory);
    wait_for(recv);
    EXPECT_FALSE(group.cancel(recv));
    EXPECT_EQ(memory, sent);
    EXPECT_EQ(withdrawn, Bytes(kSmall));
  });
}

TEST_P(GroupMessages, ComeFromAnySource) {
  run(4, [](Group& group) {
    constexpr int kRounds = 6;
    const auto size_of = [](int round) { return round % 2 == 0 ? kSmall : kLarge; };
    if (group.group_rank() != 0) {
      for (int round = 0; round < kRounds; ++round) {
        wait_for(group.send(0, random_bytes(group.group_rank() * 100 + round, size_of(round))));
      }
      return;
    }
    std::map<int, int> rounds;  // by source
    for (int i = 0; i < 3 * kRounds; ++i) {
      Bytes memory(kLarge);
      const RecvWorkPtr recv = group.recv(kAnySource, memory, {.may_be_shorter = true});
      wait_for(recv);
      const auto [source, bytes] = group.received(*recv);
      const int round = rounds[source]++;
      memory.resize(bytes);
      EXPECT_EQ(memory, random_bytes(source * 100 + round, size_of(round))) << source;
    }
    EXPECT_EQ(rounds, (std::map<int, int>{{1, kRounds}, {2, kRounds}, {3, kRounds}}));
  });
}

// Group ranks are not the world's here.
TEST_P(GroupMessages, NameTheirSourceAsAGroupRank) {
  Endpoints endpoints = make_world(GetParam(), 3);
  expect_no_errors(run_ranks(endpoints, [](Endpoint& endpoint) {
    if (endpoint.rank() > 0) {
      Group group(endpoint, {2, 1}, {.name = "pair", .id = 5});
      std::byte byte{7};
      if (group.group_rank() == 0) {
        wait_for(group.send(1, {&byte, 1}));
      } else {
        const RecvWorkPtr recv = group.recv(kAnySource, {&byte, 1});
        wait_for(recv);
        EXPECT_EQ(group.received(*recv).source, 0);
      }
    }
    endpoint.shutdown(20s);
  }));
}

// Everyone to everyone, itself too: recvs in any order of tags and sources.
TEST_P(GroupMessages, AnyMixArrives) {
  constexpr int kRanks = 3;
  constexpr int kPerTag = 4;
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  struct One {
    int from, to;
    std::uint64_t tag;
    std::size_t bytes;
    std::uint64_t content;
  };
  run(kRanks, [&](Group& group) {
    std::mt19937_64 random(seed);  // the same on all ranks
    std::vector<One> all;
    for (int i = 0; i < kRanks * kRanks * 5 * kPerTag; ++i) {
      const std::size_t bytes = random() % 4 == 0 ? random() % 200'000 : random() % 10'000;
      all.push_back({i % kRanks, i / kRanks % kRanks, random() % 5, bytes, random()});
    }
    std::vector<Bytes> sent, received;
    std::vector<WorkPtr> works;
    std::vector<One> mine;
    for (const One& one : all) {
      if (one.to == group.group_rank()) mine.push_back(one);
    }
    std::ranges::stable_sort(mine, {}, [&](const One& one) { return one.tag * 31 % 5; });
    sent.reserve(all.size());
    received.reserve(mine.size());
    for (const One& one : all) {
      if (one.from != group.group_rank()) continue;
      sent.push_back(random_bytes(one.content, one.bytes));
      works.push_back(group.send(one.to, sent.back(), {.tag = one.tag}));
    }
    for (const One& one : mine) {
      received.emplace_back(one.bytes);
      works.push_back(group.recv(one.from, received.back(), {.tag = one.tag}));
    }
    for (const WorkPtr& work : works) wait_for(work);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(received[i], random_bytes(mine[i].content, mine[i].bytes)) << i;
    }
  });
}

TEST_P(GroupMessages, WhatNobodyReceivesEndsTheGroupOfItsSender) {
  run_failing([](Group& pair, Group& other) {
    const std::byte byte{1};
    if (pair.group_rank() == 0) {
      wait_for(pair.send(1, {&byte, 1}, {.tag = 7}));
      wait_for(other.barrier());
      const Error error = failure_soon(pair);
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.message(), HasSubstr("rank 1 has ended its group"));
      EXPECT_THAT(error.message(), HasSubstr("rank 0 with tag 7"));
    } else {
      wait_for(other.barrier());
    }
  });
}

TEST_P(GroupMessages, NobodyIsLeftToSend) {
  for (const bool is_late : {false, true}) {  // it waits already, or not yet
    Endpoints endpoints = make_world(GetParam(), 2);
    const auto errors = run_ranks(endpoints, [&](Endpoint& endpoint) {
      {
        Group group(endpoint, {0, 1}, {.name = "pair", .id = 5, .deadline = 20s});
        wait_for(group.barrier());
        std::byte byte{};
        if (endpoint.rank() == 0) {
          while (is_late && !endpoint.notes().has_left(1)) std::this_thread::sleep_for(1ms);
          wait_for(group.recv(kAnySource, {&byte, 1}));
        }
      }
      endpoint.shutdown(20s);
    });
    ASSERT_TRUE(errors[0]);
    EXPECT_EQ(errors[0]->kind(), ErrorKind::kPeerLost) << errors[0]->what();
    EXPECT_THAT(errors[0]->message(), HasSubstr("rank 1 is lost"));
  }
}

}  // namespace
}  // namespace trireme::collectives::test
