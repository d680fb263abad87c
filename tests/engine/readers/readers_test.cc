#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "trireme/data/read_parts.h"
#include "trireme/engine/readers/remote_source.h"
#include "trireme/engine/readers/sample_server.h"
#include "trireme/error.h"
#include "trireme/wire/endpoint/first_ranks.h"
#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::readers {
namespace {

using data::Sample;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t kSamples = 100;

/// Sample i at visit v: i + 1000 v, and words whose number is i % 4. Counts what it reads, and says that each is decoded from ten
/// bytes of a file.
class Words : public data::Source {
 public:
  std::int64_t num_samples() const override { return kSamples; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::vector<data::Lengths> padded_lengths() const override { return {{{"words", 3}}}; }
  data::Lengths lengths_of(Sample sample) const override { return {{"words", sample.index % 4}}; }

  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override {
    ++num_read;
    data::ReadTimer timer("read");
    timer.add_bytes(10);
    const data::ReadTimer decoding("decode");
    if (sample.index == damaged)
      throw Error(ErrorKind::kCorruptData, "sample 17 is damaged", std::runtime_error("a cause"));
    if (sample.index == broken) throw std::runtime_error("not of ours");
    const std::int64_t number = sample.index + 1000 * sample.visit;
    std::memcpy(destinations[0].data(), &number, sizeof number);
    for (std::byte& word : destinations[1]) word = static_cast<std::byte>(sample.index);
  }

  std::string identity() const override { return name; }

  std::string name = "today's";
  std::int64_t damaged = -1, broken = -1;
  mutable std::atomic<int> num_read = 0;

 private:
  std::vector<data::Field> fields_ = {
      {"number", Dtype::kI64, {}},
      {.name = "words", .dtype = Dtype::kU8, .shape = {3}, .varying = {{0, "words"}}}};
};

/// The bytes of a sample's fields one after the other.
std::vector<std::byte> bytes_of(const data::Source& source, Sample sample) {
  std::vector<std::vector<std::byte>> fields;
  std::vector<std::span<std::byte>> places;
  const data::Lengths lengths = source.lengths_of(sample);
  for (const data::Field& field : source.fields()) fields.emplace_back(field.num_bytes(lengths));
  for (auto& field : fields) places.emplace_back(field);
  source.read(sample, places);
  std::vector<std::byte> all;
  for (const auto& field : fields) all.insert(all.end(), field.begin(), field.end());
  return all;
}

Error error_of(const std::exception& failure) {
  const auto* error = dynamic_cast<const Error*>(&failure);
  return error != nullptr ? *error : Error(ErrorKind::kModelFailure, failure.what());
}

std::vector<Sample> samples(std::int64_t begin, std::int64_t end, std::int64_t visit = 0) {
  std::vector<Sample> result;
  for (std::int64_t i = begin; i < end; ++i) result.push_back({i, visit});
  return result;
}

/// Ranks that train and ranks that read, each a thread; the latter have a source of their own.
class Readers : public testing::Test {
 protected:
  void run(int num_training, int num_readers,
           const std::function<void(const RemoteSource&, int rank)>& train, int num_threads = 1) {
    const int num_ranks = num_training + num_readers;
    auto endpoints = transport::make_sim_world(num_ranks, {.seed = 1});
    std::vector<std::thread> threads;
    for (int rank = 0; rank < num_ranks; ++rank) {
      threads.emplace_back([&, rank] {
        if (rank >= num_training) {
          SampleServer server({there, nullptr}, *endpoints[rank], num_readers, num_threads,
                              error_of);
          EXPECT_NO_THROW(server.wait());
          return;
        }
        const auto link =
            std::make_shared<ReaderLink>(*endpoints[rank], num_readers,
                                         transport::WatchOptions{.logger = Logger(LogLevel::kOff)});
        train(RemoteSource(here, 0, link), rank);
        link->end();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::string message_of(const RemoteSource& source, Sample sample, ErrorKind kind) {
    try {
      bytes_of(source, sample);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    return "nothing was thrown";
  }

  std::shared_ptr<Words> there = std::make_shared<Words>(), here = std::make_shared<Words>();
  const Words plain;
};

TEST_F(Readers, ReadWhatTheSourceHas) {
  for (const int num_readers : {1, 3}) {
    for (const int num_threads : {1, 3}) {
      run(
          2, num_readers,
          [&](const RemoteSource& source, int rank) {
            const std::int64_t visit = rank;
            for (std::int64_t begin = 0; begin < kSamples; begin += 20) {
              const std::vector<Sample> next = samples(begin, begin + 20, visit);
              source.will_read(next);
              for (const Sample sample : next)
                EXPECT_EQ(bytes_of(source, sample), bytes_of(plain, sample));
            }
            EXPECT_EQ(bytes_of(source, {7, 5}), bytes_of(plain, {7, 5})) << "that nobody has told";
            EXPECT_EQ(source.num_samples(), kSamples);
            EXPECT_THAT(source.reading(), HasSubstr(std::to_string(num_readers) + " reader ranks"));
          },
          num_threads);
    }
  }
  EXPECT_EQ(here->num_read, 0) << "a rank that trains has read";
}

TEST_F(Readers, ReadEachSampleOnceThatIsToldAndRead) {
  run(1, 2, [&](const RemoteSource& source, int) {
    source.will_read(samples(0, 40));
    source.will_read(samples(20, 60));
    for (const Sample sample : samples(0, 60)) bytes_of(source, sample);
    EXPECT_EQ(bytes_of(source, {3, 0}), bytes_of(plain, {3, 0})) << "a second time";
  });
  EXPECT_EQ(there->num_read, 61);
}

TEST_F(Readers, ManyThreadsOfARankMayRead) {
  run(1, 2, [&](const RemoteSource& source, int) {
    const std::vector<Sample> all = samples(0, kSamples);
    source.will_read(all);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::int64_t i = t; i < kSamples; i += 4)
          EXPECT_EQ(bytes_of(source, all[i]), bytes_of(plain, all[i]));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_F(Readers, ForgetWhatIsToldAndNeverRead) {
  run(1, 1, [&](const RemoteSource& source, int) {
    for (std::int64_t begin = 0; begin + 10 <= kSamples; begin += 10)
      source.will_read(samples(begin, begin + 10));
    EXPECT_EQ(bytes_of(source, {95, 0}), bytes_of(plain, {95, 0}));
    const int before = there->num_read;
    EXPECT_EQ(bytes_of(source, {5, 0}), bytes_of(plain, {5, 0}));
    EXPECT_EQ(there->num_read, before + 1) << "it was kept";
  });
}

TEST_F(Readers, WhatTheyTakeIsCountedByWhoAsks) {
  run(1, 2, [&](const RemoteSource& source, int) {
    data::ReadParts parts;
    const data::CountedReading counted(&parts);
    source.will_read(samples(0, 40));
    for (const Sample sample : samples(0, 40)) bytes_of(source, sample);
    bytes_of(source, {50, 0});  // that nobody has told
    const auto taken = parts.take();
    EXPECT_EQ(taken.at("read").bytes, 41 * 10);
    EXPECT_EQ(taken.at("read").count, 41);
    EXPECT_EQ(taken.at("decode").count, 41);
    EXPECT_GT(taken.at("decode").time.count(), 0);
    EXPECT_LT(taken.at("decode").time, std::chrono::seconds(1));
  });
}

TEST_F(Readers, ReadOnceEachTimeThatTheSameAreTold) {
  run(1, 2, [&](const RemoteSource& source, int) {
    for (int time = 0; time < 6; ++time) {
      source.will_read(samples(0, 10));
      for (const Sample sample : samples(0, 10)) bytes_of(source, sample);
    }
  });
  EXPECT_EQ(there->num_read, 60);
}

TEST_F(Readers, AnErrorComesToWhoNeedsTheSample) {
  there->damaged = 17;
  there->broken = 18;
  run(2, 1, [&](const RemoteSource& source, int) {
    source.will_read(samples(10, 30));
    EXPECT_EQ(bytes_of(source, {16, 0}), bytes_of(plain, {16, 0}));
    EXPECT_THAT(
        message_of(source, {17, 0}, ErrorKind::kCorruptData),
        AllOf(HasSubstr("sample 17 is damaged"), HasSubstr("rank 2"), HasSubstr("a cause")));
    EXPECT_THAT(message_of(source, {18, 0}, ErrorKind::kModelFailure), HasSubstr("not of ours"));
    EXPECT_EQ(bytes_of(source, {19, 0}), bytes_of(plain, {19, 0}));
  });
}

/// Two samples have changed places: as many bytes in all.
TEST_F(Readers, OtherDataAreFound) {
  class Turned : public Words {
    data::Lengths lengths_of(Sample sample) const override {
      return Words::lengths_of({sample.index ^ 1, sample.visit});
    }
  };
  there = std::make_shared<Turned>();
  run(1, 1, [&](const RemoteSource& source, int) {
    source.will_read(samples(0, 2));
    EXPECT_THAT(message_of(source, {0, 0}, ErrorKind::kInvalidArgument),
                HasSubstr("has other data: sample 0 of 9 bytes, which here has 8"));
  });
  there = std::make_shared<Words>();
  there->name = "yesterday's";
  run(2, 2, [&](const RemoteSource& source, int) {
    EXPECT_THAT(message_of(source, {0, 0}, ErrorKind::kInvalidArgument),
                AllOf(HasSubstr("a reader has other data"), HasSubstr("words=3 yesterday's'")));
  });
}

TEST_F(Readers, IndicesAndSourcesAreChecked) {
  run(1, 1, [&](const RemoteSource& source, int) {
    const std::vector<Sample> bad = {{kSamples, 0}};
    EXPECT_THROW(source.will_read(bad), Error);
    EXPECT_THAT(message_of(source, {kSamples, 0}, ErrorKind::kInvalidArgument),
                HasSubstr("there is no sample 100; there are 100"));
  });
  auto endpoints = transport::make_sim_world(2, {.seed = 1});
  SampleServer server({there, nullptr}, *endpoints[1], 1, 1, error_of);
  const auto link = std::make_shared<ReaderLink>(*endpoints[0], 1, transport::WatchOptions{});
  for (const std::int64_t number : {1, 2}) {
    const RemoteSource source(here, number, link);
    EXPECT_THAT(message_of(source, {0, 0}, ErrorKind::kInvalidArgument),
                HasSubstr("there is no source"));
  }
  link->end();
  EXPECT_THAT(message_of(RemoteSource(here, 0, link), {0, 0}, ErrorKind::kInvalidArgument),
              HasSubstr("has ended"));
}

TEST_F(Readers, AWorldThatFailsEndsBothSides) {
  auto endpoints = transport::make_sim_world(2, {.seed = 1});
  SampleServer server({there}, *endpoints[1], 1, 1, error_of);
  const auto link = std::make_shared<ReaderLink>(
      *endpoints[0], 1, transport::WatchOptions{.logger = Logger(LogLevel::kOff)});
  const RemoteSource source(here, 0, link);
  source.will_read(samples(0, 50));
  endpoints[0]->poison(Error(ErrorKind::kPeerLost, "the mast is broken"));
  EXPECT_THROW(server.wait(), Error);
  EXPECT_THAT(message_of(source, {60, 0}, ErrorKind::kPeerLost), HasSubstr("the mast is broken"));
  link->end();
}

TEST(FirstRanks, AreAWorldOfTheirOwn) {
  auto endpoints = transport::make_sim_world(3, {.seed = 1});
  transport::FirstRanks first(*endpoints[0], 2);
  EXPECT_EQ(first.rank(), 0);
  EXPECT_EQ(first.world_size(), 2);
  EXPECT_THROW(first.send(2, 1, {}), Error);
  EXPECT_EQ(first.count_use(5), 0U);
  EXPECT_EQ(endpoints[0]->count_use(5), 1U) << "groups of all and of the first count together";
  first.poison(Error(ErrorKind::kCancelled, "enough"));
  EXPECT_TRUE(endpoints[0]->failure().has_value());
}

}  // namespace
}  // namespace trireme::readers
