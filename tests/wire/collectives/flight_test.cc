// The flight record: what groups write to it over every backend, and what readers make of bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/wire/collectives/group_world.h"
#include "trireme/wire/collectives/flight/record.h"
#include "trireme/wire/collectives/flight/recorder.h"

namespace trireme::collectives::test {
namespace {

using std::chrono::microseconds;
using testing::HasSubstr;
using Time = FlightRecorder::Time;

FlightOwner owner_of(int group_size) {
  return {.world_rank = 5,
          .world_size = 8,
          .group_rank = 1,
          .group_size = group_size,
          .group = "data 1"};
}

Request sum_request(std::span<float> data) {
  return {.description = {.operation = Collective::kAllReduce,
                          .dtype = Dtype::kF32,
                          .count = static_cast<std::int64_t>(data.size())},
          .data = data};
}

std::vector<std::byte> copy_of(const FlightRecorder& recorder) { return recorder.copy(); }

TEST(Flight, SaysWhatEachOperationDid) {
  FlightRecorder recorder(owner_of(3));
  std::vector<float> data(10);
  const Time now = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < 4; ++i) recorder.call(i, sum_request(data), now);
  recorder.start(0, now + microseconds(10));
  recorder.end(0, now + microseconds(30), {.group_rank = 2, .time = microseconds(15)});
  recorder.start(1, now + microseconds(30));
  recorder.fail(1, now + microseconds(40));
  recorder.start(2, now + microseconds(50));
  const FlightRecord record = parse_flight(copy_of(recorder));
  EXPECT_EQ(record.world_rank, 5);
  EXPECT_EQ(record.world_size, 8);
  EXPECT_EQ(record.group, "data 1");
  ASSERT_EQ(record.operations.size(), 4);
  const FlightOperation& first = record.operations[0];
  EXPECT_EQ(first.state, FlightState::kEnded);
  EXPECT_EQ(first.operation, Collective::kAllReduce);
  EXPECT_EQ(first.dtype, Dtype::kF32);
  EXPECT_EQ(first.count, 10);
  EXPECT_EQ(first.bytes, 40);
  EXPECT_EQ(*first.ended - *first.started, microseconds(20));
  EXPECT_EQ(first.late_rank, 2);
  EXPECT_EQ(first.waited, microseconds(15));
  EXPECT_EQ(record.operations[1].state, FlightState::kFailed);
  EXPECT_EQ(record.operations[2].state, FlightState::kStarted);
  EXPECT_EQ(record.operations[2].ended, std::nullopt);
  EXPECT_EQ(record.operations[3].state, FlightState::kCalled);
  EXPECT_EQ(record.operations[3].started, std::nullopt);
  EXPECT_EQ(record.lateness[2].num_operations, 1);
  EXPECT_DOUBLE_EQ(record.lateness[2].mean.count(), 15);
  EXPECT_THAT(to_text(record), HasSubstr("group rank 2 was the last of 1 operations, 15.0 us"));
}

TEST(Flight, KeepsTheLast) {
  FlightRecorder recorder(owner_of(2));
  const Time now = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < 3000; ++i) {
    recorder.call(i, {}, now);
    recorder.end(i, now, {.group_rank = 0, .time = microseconds(2)});
  }
  recorder.fail(3, now);  // its entry belongs to another one now
  const FlightRecord record = parse_flight(copy_of(recorder));
  ASSERT_EQ(record.operations.size(), 1024);
  EXPECT_EQ(record.operations.front().sequence, 3000 - 1024);
  EXPECT_EQ(record.operations.back().sequence, 2999);
  for (const FlightOperation& operation : record.operations) {
    EXPECT_EQ(operation.state, FlightState::kEnded);
  }
  EXPECT_EQ(record.lateness[0].num_operations, 3000);
}

TEST(Flight, AnyBytesAreSafe) {
  FlightRecorder recorder(owner_of(2));
  recorder.call(0, {}, std::chrono::steady_clock::now());
  const std::vector<std::byte> good = copy_of(recorder);
  std::mt19937_64 random(7);
  int num_refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes = good;
    const std::size_t range = round % 2 == 0 ? 320 : bytes.size();  // the header more often
    for (int i = 0; i < 8; ++i) bytes[random() % range] = static_cast<std::byte>(random());
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    try {
      to_text(parse_flight(bytes), 2000);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
      ++num_refused;
    }
  }
  EXPECT_GT(num_refused, 200);
  EXPECT_THROW(parse_flight({}), Error);
}

TEST(Flight, ReadersSeeWholeEntriesWhileOneWrites) {
  FlightRecorder recorder(owner_of(2));
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    for (std::int64_t i = 0; !is_over; ++i) {
      Request request{.description = {.count = i, .root = static_cast<std::int32_t>(i % 1000)}};
      recorder.call(i, request, std::chrono::steady_clock::now());
    }
  });
  std::size_t num_seen = 0;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int round = 0; round < 200 || num_seen <= 1000; ++round) {
    if (std::chrono::steady_clock::now() > limit) break;  // the writer has had no core
    for (const FlightOperation& operation : parse_flight(copy_of(recorder)).operations) {
      ++num_seen;
      EXPECT_EQ(operation.count, operation.sequence);
      EXPECT_EQ(operation.root, operation.sequence % 1000);
    }
  }
  is_over = true;
  writer.join();
  EXPECT_GT(num_seen, 1000);
}

class FlightOfGroup : public transport::test::OverBackend {};

TEST_P(FlightOfGroup, NamesTheRankThatIsLate) {
  transport::test::expect_no_errors(run_group(GetParam(), 3, [](Group& group) {
    std::vector<float> data(100);
    for (int i = 0; i < 5; ++i) {
      if (group.group_rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      transport::test::wait_for(group.all_reduce(std::span(data)));
    }
    const FlightRecord record = group.flight();
    ASSERT_EQ(record.operations.size(), 5);
    EXPECT_EQ(record.world_rank, group.group_rank());
    for (const FlightOperation& operation : record.operations) {
      EXPECT_EQ(operation.state, FlightState::kEnded);
      EXPECT_EQ(operation.count, 100);
      EXPECT_LE(operation.called, *operation.started);
      EXPECT_LE(*operation.started, *operation.ended);
    }
    if (group.group_rank() == 2) return;
    EXPECT_GE(record.lateness[2].num_operations, 3) << to_text(record);
    EXPECT_GT(record.lateness[2].mean.count(), 10'000) << to_text(record);
  }));
}

TEST_P(FlightOfGroup, ShowsWhatFailed) {
  GroupOptions options{.deadline = std::chrono::milliseconds(200)};
  run_group(
      GetParam(), 2,
      [](Group& group) {
        transport::test::wait_for(group.barrier());
        if (group.group_rank() == 0) {
          const auto work = group.barrier();
          EXPECT_THROW(work->wait_for(std::chrono::seconds(20)), Error);
          const FlightRecord record = group.flight();
          ASSERT_EQ(record.operations.size(), 2);
          EXPECT_EQ(record.operations[0].state, FlightState::kEnded);
          EXPECT_EQ(record.operations[1].state, FlightState::kFailed);
        } else {
          std::this_thread::sleep_for(std::chrono::milliseconds(500));
        }
      },
      options);
}

INSTANTIATE_TEST_SUITE_P(Backends, FlightOfGroup,
                         testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace trireme::collectives::test
