#include "trireme/data/read_ahead.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr std::int64_t kAlignment = 16;

/// What lies at a place of a file, so that whoever has read a byte knows from where.
std::byte byte_at(int file, std::int64_t place) {
  return static_cast<std::byte>((place * 7 + place / 251 + file * 13) & 0xFF);
}

/// What the queue does about a read, but for the usual.
enum class ReadFault : std::uint8_t { kNone, kShort, kAgain, kError, kEnd };

/// Of a queue that has gone: what the system might still write into.
using LostReads = std::shared_ptr<std::vector<ReadQueue::Request>>;

constexpr int kNever = 1'000'000;

/// Files of `file_bytes` that nobody wrote, whose reads end in an order drawn by the seed. Thread-safe as ReadQueue is.
class FakeQueue : public ReadQueue {
 public:
  explicit FakeQueue(std::uint64_t seed, std::int64_t file_bytes = 1 << 20)
      : random_(seed), file_bytes_(file_bytes) {
    for (int file = 0; file < 3; ++file) {
      files.push_back(
          std::make_shared<const Descriptor>(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    }
  }

  ~FakeQueue() override {
    if (waits_until_failure < 0) *lost = begun_;
    EXPECT_EQ(begun_.size(), lost->size()) << "memory is gone that is read into";
  }

  void add(const Request& request) override {
    EXPECT_EQ(request.begin % kAlignment, 0);
    EXPECT_EQ(request.to.size() % kAlignment, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(request.to.data()) % kAlignment, 0U);
    added_.push_back(request);
  }

  int submit() override {
    if (num_refused > 0) return --num_refused, 0;
    const std::scoped_lock lock(mutex_);
    EXPECT_GE(submits_until_failure, 0) << "used after it had failed";
    if (submits_until_failure-- == 0) throw Error(ErrorKind::kIo, "no submission");
    const auto count = static_cast<int>(added_.size());
    begun_.insert(begun_.end(), added_.begin(), added_.end());
    added_.clear();
    num_submits += count > 0 ? 1 : 0;
    num_requests += count;
    most_in_flight = std::max(most_in_flight, static_cast<int>(begun_.size()));
    return count;
  }

  std::vector<Completion> wait() override {
    const std::scoped_lock lock(mutex_);
    EXPECT_FALSE(begun_.empty()) << "a wait for nothing";
    EXPECT_GE(waits_until_failure, 0) << "waited for after that had failed";
    if (waits_until_failure-- == 0) throw Error(ErrorKind::kIo, "no wait");
    std::vector<Completion> completions;
    std::ranges::shuffle(begun_, random_);
    for (auto left = 1 + random_() % begun_.size(); left > 0; --left) {
      completions.push_back({begun_.back().id, serve(begun_.back())});
      begun_.pop_back();
    }
    return completions;
  }

  std::vector<std::shared_ptr<const Descriptor>> files;  ///< Stand for those that are read.
  std::map<std::int64_t, ReadFault> faults;              ///< By where a read begins, each once.
  int submits_until_failure = kNever, waits_until_failure = kNever;  ///< Below 0: it has failed.
  LostReads lost = std::make_shared<std::vector<Request>>();  ///< Begun, once a wait has failed.
  int num_refused = 0, num_submits = 0, num_requests = 0, most_in_flight = 0;

 private:
  int serve(const Request& request) {
    auto bytes = static_cast<std::int64_t>(request.to.size());
    const ReadFault fault = std::exchange(faults[request.begin], ReadFault::kNone);
    if (fault == ReadFault::kAgain) return -EAGAIN;
    if (fault == ReadFault::kError) return -EIO;
    if (fault == ReadFault::kShort)
      bytes = std::max(kAlignment, bytes / 2 / kAlignment * kAlignment);
    bytes = std::clamp<std::int64_t>(file_bytes_ - request.begin, 0, bytes);
    if (fault == ReadFault::kEnd) bytes = std::min<std::int64_t>(bytes, 5);
    const auto file = std::ranges::find(files, request.descriptor,
                                        [](const auto& open) { return open->number(); });
    for (std::int64_t i = 0; i < bytes; ++i) {
      request.to[static_cast<std::size_t>(i)] =
          byte_at(static_cast<int>(file - files.begin()), request.begin + i);
    }
    return static_cast<int>(bytes);
  }

  std::mutex mutex_;  ///< Guards what follows, and counts.
  std::mt19937_64 random_;
  std::int64_t file_bytes_;
  std::vector<Request> added_, begun_;
};

struct AheadSetting {
  explicit AheadSetting(ReadAheadLimits limits, std::uint64_t seed = 1)
      : queue(new FakeQueue(seed)),
        ahead(limits, std::unique_ptr<ReadQueue>(queue), [this](int file) {
          if (file == missing) throw Error(ErrorKind::kIo, "gone");
          return queue->files.at(static_cast<std::size_t>(file));
        }) {}

  static RecordExtent extent_of(std::int64_t record, std::int64_t bytes = 24) {
    const int file = static_cast<int>(record / 1000);
    const std::int64_t begin = record % 1000 * bytes + 3;
    return {.record = record, .file = file, .begin = begin, .end = begin + bytes};
  }

  void want(const std::vector<std::int64_t>& records, std::int64_t bytes = 24) {
    std::vector<RecordExtent> extents;
    for (const std::int64_t record : records) extents.push_back(extent_of(record, bytes));
    ahead.want(extents);
  }

  /// Whether it was there, and right.
  bool take(std::int64_t record, std::int64_t bytes = 24) {
    const ReadAhead::Bytes found = ahead.take(record);
    if (!found.owner) return false;
    const RecordExtent extent = extent_of(record, bytes);
    EXPECT_EQ(std::ssize(found.bytes), bytes);
    for (std::int64_t i = 0; i < std::ssize(found.bytes); ++i) {
      if (found.bytes[static_cast<std::size_t>(i)] == byte_at(extent.file, extent.begin + i))
        continue;
      ADD_FAILURE() << "record " << record << ", byte " << i;
      break;
    }
    return true;
  }

  FakeQueue* queue;
  ReadAhead ahead;
  int missing = -1;
};

constexpr std::int64_t kMuch = std::int64_t{1} << 30;

std::vector<std::int64_t> every(std::int64_t begin, std::int64_t end, std::int64_t by = 1) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = begin; i < end; i += by) result.push_back(i);
  return result;
}

TEST(ReadAhead, WhatIsWantedIsThereOnce) {
  AheadSetting setting({.num_in_flight = 4, .max_bytes = kMuch, .alignment = kAlignment});
  EXPECT_FALSE(setting.take(7));
  setting.want({7, 9});
  setting.want({7});  // told again: it counts once
  EXPECT_TRUE(setting.take(9));
  EXPECT_TRUE(setting.take(7));
  EXPECT_FALSE(setting.take(7));
  EXPECT_EQ(setting.ahead.num_bytes(), 0);
}

TEST(ReadAhead, NeighboursAreReadTogetherAndThoseFarAwayAreNot) {
  AheadSetting setting({.num_in_flight = 64, .max_bytes = kMuch, .alignment = kAlignment});
  setting.want({3, 2, 1, 900, 901, 1000, 2});  // 900 lies 21 KB further, 1000 in another file
  EXPECT_EQ(setting.queue->num_requests, 3);
  EXPECT_EQ(setting.queue->num_submits, 1);
  for (const std::int64_t record : {900, 1, 1000, 3, 2, 901}) EXPECT_TRUE(setting.take(record));
}

TEST(ReadAhead, ReadsAreBoundedInNumberAndBytes) {
  for (const int num_in_flight : {1, 2, 7}) {
    AheadSetting setting(
        {.num_in_flight = num_in_flight, .max_bytes = kMuch, .alignment = kAlignment});
    const auto records = every(0, 1000, 200);  // far from each other: a request each
    setting.want(records);
    for (const std::int64_t record : records) EXPECT_TRUE(setting.take(record));
    EXPECT_EQ(setting.queue->most_in_flight, std::min<int>(num_in_flight, 5));
  }
  AheadSetting setting({.num_in_flight = 64, .max_bytes = 100, .alignment = kAlignment});
  setting.want(every(0, 1000, 200));
  EXPECT_EQ(setting.queue->num_requests, 3);  // of 32 bytes each
  EXPECT_EQ(setting.ahead.num_bytes(), 96);
  for (const std::int64_t record : {800, 600, 0, 200, 400}) EXPECT_TRUE(setting.take(record));
  EXPECT_EQ(setting.ahead.num_bytes(), 0);
}

TEST(ReadAhead, ShortReadsGoOnAndInterruptedOnesBeginAgain) {
  AheadSetting setting({.num_in_flight = 4, .max_bytes = kMuch, .alignment = kAlignment});
  setting.queue->faults = {
      {0, ReadFault::kShort}, {7200, ReadFault::kAgain}, {14400, ReadFault::kShort}};
  setting.want(every(0, 5));
  setting.want({300, 600});
  for (const std::int64_t record : {0, 1, 2, 3, 4, 300, 600}) EXPECT_TRUE(setting.take(record));
  EXPECT_EQ(setting.queue->num_requests, 6);
}

/// It is read by who needs it, who says what is wrong; the others are there.
TEST(ReadAhead, WhatFailsIsNotThere) {
  for (const ReadFault fault : {ReadFault::kError, ReadFault::kEnd}) {
    AheadSetting setting({.num_in_flight = 4, .max_bytes = kMuch, .alignment = kAlignment});
    setting.queue->faults = {{4800, fault}};
    setting.want({0, 200, 201, 400});
    EXPECT_TRUE(setting.take(0));
    EXPECT_FALSE(setting.take(201));
    EXPECT_FALSE(setting.take(200));
    EXPECT_TRUE(setting.take(400));
    EXPECT_EQ(setting.ahead.num_bytes(), 0);
    setting.want({200});
    EXPECT_TRUE(setting.take(200)) << "it may be wanted anew";
  }
  AheadSetting setting({.num_in_flight = 4, .max_bytes = kMuch, .alignment = kAlignment});
  setting.missing = 1;
  setting.want({1500, 0});
  EXPECT_FALSE(setting.take(1500));
  EXPECT_TRUE(setting.take(0));
}

TEST(ReadAhead, AReadBehindTheEndIsNotThere) {
  AheadSetting setting({.num_in_flight = 4, .max_bytes = kMuch, .alignment = kAlignment});
  setting.ahead.want({{.record = 5, .file = 0, .begin = (1 << 20) - 8, .end = (1 << 20) + 8},
                      {.record = 6, .file = 0, .begin = 2 << 20, .end = (2 << 20) + 8}});
  EXPECT_FALSE(setting.ahead.take(5).owner);
  EXPECT_FALSE(setting.ahead.take(6).owner);
}

/// Records that nobody takes, as of a reading that began anew elsewhere, do not keep the memory.
TEST(ReadAhead, OlderCallsAreForgottenWhereMemoryIsShort) {
  AheadSetting setting({.num_in_flight = 8, .max_bytes = 128, .alignment = kAlignment});
  setting.want(every(0, 1000, 200));
  setting.want({1000, 1400});
  EXPECT_TRUE(setting.take(1400));
  EXPECT_FALSE(setting.take(0));
  EXPECT_TRUE(setting.take(1000));
  EXPECT_EQ(setting.ahead.num_bytes(), 0);
}

TEST(ReadAhead, ReadsThatCannotBeginForAWhileBeginLater) {
  AheadSetting setting({.num_in_flight = 4, .max_bytes = kMuch, .alignment = kAlignment});
  setting.queue->num_refused = 3;
  setting.want({0, 200});
  EXPECT_TRUE(setting.take(200));
  EXPECT_TRUE(setting.take(0));
}

TEST(ReadAhead, WhatIsStillReadAtTheEndIsWaitedFor) {
  AheadSetting setting({.num_in_flight = 4, .max_bytes = kMuch, .alignment = kAlignment});
  setting.want({0, 200, 400});
}

/// A record larger than a request usually is, and than the memory.
TEST(ReadAhead, LargeRecordsAreReadWhole) {
  AheadSetting setting({.num_in_flight = 4, .max_bytes = 1000, .alignment = kAlignment});
  setting.want({0, 1}, 300'000);
  EXPECT_TRUE(setting.take(1, 300'000));
  EXPECT_TRUE(setting.take(0, 300'000));
}

constexpr ReadAheadLimits kFew{.num_in_flight = 4, .max_bytes = kMuch, .alignment = kAlignment};

/// What had begun comes; the rest is not there, and the queue is left alone.
TEST(ReadAhead, AfterAFailedSubmissionNothingMoreIsReadAhead) {
  AheadSetting setting(kFew);
  EXPECT_EQ(setting.ahead.failure(), "");
  setting.want({0, 200});
  setting.queue->submits_until_failure = 0;
  setting.queue->faults = {{4800, ReadFault::kShort}};  // that would go on
  setting.want({400, 600, 800, 1000, 1200});
  EXPECT_THAT(setting.ahead.failure(), testing::HasSubstr("no submission"));
  for (const std::int64_t record : {1200, 400, 1000, 600, 800}) EXPECT_FALSE(setting.take(record));
  EXPECT_TRUE(setting.take(0));
  EXPECT_FALSE(setting.take(200));
  setting.want({1400});
  EXPECT_FALSE(setting.take(1400));
  EXPECT_EQ(setting.queue->num_requests, 2);
  EXPECT_EQ(setting.ahead.num_bytes(), 0);
}

/// Who waits is told that the record is not there; the memory of what was begun stays, as the system may write there.
TEST(ReadAhead, AfterAFailedWaitNothingIsThereAndItsMemoryStays) {
  constexpr std::int64_t kLarge = 40 << 20;  // memory of its own, that goes when it is given back
  for (const bool is_taken : {false, true}) {
    SCOPED_TRACE(is_taken);
    LostReads lost;
    {
      AheadSetting setting({.num_in_flight = 2, .max_bytes = 100, .alignment = kAlignment});
      lost = setting.queue->lost;
      setting.queue->waits_until_failure = 0;
      setting.want({0, 200}, kLarge);
      if (is_taken) {
        EXPECT_FALSE(setting.take(200, kLarge));
        EXPECT_FALSE(setting.take(0, kLarge));
        EXPECT_THAT(setting.ahead.failure(), testing::HasSubstr("no wait"));
        EXPECT_EQ(setting.ahead.num_bytes(), 0);
        setting.want({400});
        EXPECT_FALSE(setting.take(400));
      }
    }
    ASSERT_EQ(lost->size(), is_taken ? 2U : 1U);
    for (const ReadQueue::Request& request : *lost) {
      const auto place = reinterpret_cast<std::uintptr_t>(request.to.data());
      auto* page = reinterpret_cast<void*>((place + 4095) / 4096 * 4096);
      ASSERT_EQ(::msync(page, kLarge, MS_ASYNC), 0) << "is not mapped any more";
      std::free(request.to.data());
    }
  }
}

TEST(ReadAhead, AQueueThatBeginsNothingForLongHasFailed) {
  ReadAheadLimits limits = kFew;
  limits.most_idle_ms = 5;
  AheadSetting setting(limits);
  setting.queue->num_refused = kNever;
  setting.want({0, 200});
  EXPECT_FALSE(setting.take(200));
  EXPECT_THAT(setting.ahead.failure(), testing::HasSubstr("no memory"));
  EXPECT_FALSE(setting.take(0));
  EXPECT_EQ(setting.ahead.num_bytes(), 0);
}

/// Threads take what several calls wanted, with faults in between: each is right or not there, and none waits for ever.
TEST(ReadAhead, SeveralThreadsTakeWhatTheyWant) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    auto setting = std::make_unique<AheadSetting>(
        ReadAheadLimits{.num_in_flight = 1 + static_cast<int>(random() % 6),
                        .max_bytes = static_cast<std::int64_t>(random() % 3000),
                        .alignment = kAlignment},
        seed);
    const LostReads lost = setting->queue->lost;
    if (seed % 4 == 1) setting->queue->submits_until_failure = static_cast<int>(random() % 30);
    if (seed % 4 == 2) setting->queue->waits_until_failure = static_cast<int>(random() % 30);
    for (int i = 0; i < 20; ++i) {
      const auto place = static_cast<std::int64_t>(random() % 1500) * kAlignment;
      const auto fault = static_cast<ReadFault>(random() % 5);
      // Of a read that goes on, `lost` would not know where its memory begins.
      if (seed % 4 != 2 || fault != ReadFault::kShort) setting->queue->faults[place] = fault;
    }
    std::vector<std::int64_t> records = every(0, 3000, 1 + static_cast<std::int64_t>(seed % 40));
    std::ranges::shuffle(records, random);
    constexpr std::size_t kBatch = 32;
    for (std::size_t begin = 0; begin < records.size(); begin += kBatch) {
      const auto end = std::min(records.size(), begin + kBatch);
      const std::vector<std::int64_t> batch(records.begin() + static_cast<std::ptrdiff_t>(begin),
                                            records.begin() + static_cast<std::ptrdiff_t>(end));
      setting->want(batch);
      std::vector<std::jthread> threads;
      for (std::size_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
          for (std::size_t i = t; i < batch.size(); i += 3) setting->take(batch[i]);
        });
      }
    }
    EXPECT_EQ(setting->ahead.num_bytes(), 0);
    setting.reset();
    for (const ReadQueue::Request& request : *lost) std::free(request.to.data());
  }
}

}  // namespace
}  // namespace trireme::data
