#include "trireme/data/fixed_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/base/few_descriptors.h"
#include "tests/data/click_files.h"
#include "tests/data/number_source.h"
#include "trireme/data/order.h"
#include "trireme/data/parallel_read.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

using FixedRecordsTest = ClickFiles;

TEST_F(FixedRecordsTest, RecordsAreThoseOfTheFilesWhateverTheWayTheyAreRead) {
  const auto paths = files();
  std::string no_direct;
  for (const FileAccess access :
       {FileAccess::kBySize, FileAccess::kDirect, FileAccess::kBuffered}) {
    const FixedRecords records(paths, options(access));
    EXPECT_EQ(records.record_bytes(), 12);
    ASSERT_EQ(records.num_samples(), 5001);
    ASSERT_EQ(records.fields().size(), 3U);
    EXPECT_EQ(records.fields()[1], click_fields()[2]);
    for (const int index : {0, 999, 1000, 1001, 5000, 341, 342}) {
      EXPECT_EQ(click_at(records, index), index);
    }
    EXPECT_THAT(records.name(1002), AllOf(HasSubstr("record 1 of '"), HasSubstr("2.bin'")));
    if (access == FileAccess::kDirect && !is_direct(records)) no_direct = records.reading();
    if (access != FileAccess::kDirect) {
      EXPECT_THAT(records.reading(), HasSubstr("through"));
    }
  }
  if (!no_direct.empty()) GTEST_SKIP() << "past the system's cache, records came " << no_direct;
}

/// In shuffled order, told a batch ahead, by several threads: for any number of requests and any room.
TEST_F(FixedRecordsTest, WhatIsReadAheadHasTheSameBits) {
  const auto paths = files();
  for (const int num_in_flight : {1, 3, 64}) {
    for (const std::int64_t ahead_bytes : {0, 5'000, 1 << 20}) {
      SCOPED_TRACE(std::to_string(num_in_flight) + " " + std::to_string(ahead_bytes));
      FixedRecordOptions some = options(FileAccess::kDirect, num_in_flight);
      some.ahead_bytes = ahead_bytes;
      const FixedRecords records(paths, some);
      if (!is_direct(records)) GTEST_SKIP() << records.reading();
      const SampleOrder order(records.num_samples(), 3);
      constexpr std::int64_t kBatch = 100;
      const auto batch_at = [&](std::int64_t batch) {
        std::vector<Sample> samples;
        for (std::int64_t i = 0; i < kBatch; ++i)
          samples.push_back({order.sample_at(batch * kBatch + i)});
        return samples;
      };
      records.will_read(batch_at(0));
      for (std::int64_t batch = 0; batch < 12; ++batch) {
        records.will_read(batch_at(batch + 1));
        const auto samples = batch_at(batch);
        std::vector<int> ids(kBatch, -2);
        const auto read = [&](std::int64_t i) {
          ids[static_cast<std::size_t>(i)] =
              click_at(records, samples[static_cast<std::size_t>(i)].index);
        };
        read_each(kBatch, read, kernels::on_threads(3));
        for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], samples[i].index);
      }
    }
  }
}

/// Remembers what it was told.
class Told : public NumberSource {
 public:
  using NumberSource::NumberSource;

  void will_read(std::span<const Sample> samples) const override {
    for (const Sample& sample : samples) told.push_back(sample.index);
  }
  std::string reading() const override { return "by heart"; }

  mutable std::vector<std::int64_t> told;
};

/// Each through all decorators: just the samples that are read then, in that order.
TEST_F(FixedRecordsTest, DecoratorsTellWhatIsBeneathThem) {
  const auto first = std::make_shared<Told>(0, 50), second = std::make_shared<Told>(1'000, 70);
  const auto mixed = mix({{skip_damaged(first, {}), 1}, {second, 2}}, {.seed = 5});
  EXPECT_EQ(mixed->reading(), "by heart");
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < 30; ++i) samples.push_back({i * 7 % 60});
  mixed->will_read(samples);
  std::vector<std::int64_t> of_first, of_second;
  for (const Sample& sample : samples) {
    const std::int64_t number = number_at(*mixed, sample.index).index;
    (number < 1'000 ? of_first : of_second).push_back(number % 1'000);
  }
  EXPECT_EQ(of_first.size(), 10U);
  EXPECT_EQ(first->told, of_first);
  EXPECT_EQ(second->told, of_second);
  first->told.clear();
  const auto repeated = repeat(first, {.times = 2});
  EXPECT_EQ(repeated->reading(), "by heart");
  repeated->will_read(std::vector<Sample>{{7, 0}, {3, 1}});
  EXPECT_EQ(first->told, (std::vector<std::int64_t>{7, 3}));
}

TEST_F(FixedRecordsTest, HeadersAreSkippedAndOneFieldIsReadInPlace) {
  const fs::path path = write("x.bin", "header!" + clicks(0, 300));
  for (const FileAccess access : {FileAccess::kDirect, FileAccess::kBuffered}) {
    FixedRecordOptions some{
        .fields = {{"all", Dtype::kU8, {12}}}, .header_bytes = 7, .access = access};
    const FixedRecords records({path}, some);
    ASSERT_EQ(records.num_samples(), 300);
    std::string bytes(12, ' ');
    const std::span<std::byte> to = std::as_writable_bytes(std::span(bytes));
    for (const bool is_told : {false, true}) {
      if (is_told) records.will_read(std::vector<Sample>{{299}});
      records.read({299}, {&to, 1});
      EXPECT_EQ(bytes, click(299));
    }
  }
}

TEST_F(FixedRecordsTest, WhatIsNoSuchFileIsRefused) {
  const fs::path cut = write("cut.bin", clicks(0, 10) + "abc");
  EXPECT_THAT(complaint({cut}, options()),
              AllOf(HasSubstr("cut.bin' has 123 bytes"), HasSubstr("of 12; it is cut off")));
  EXPECT_EQ(error_of([&] { const FixedRecords records({cut}, options()); }).kind(),
            ErrorKind::kCorruptData);
  EXPECT_THAT(complaint({write("short.bin", "abc")}, {.fields = click_fields(), .header_bytes = 7}),
              HasSubstr("a header of 7"));
  EXPECT_THAT(complaint({write("empty.bin", "")}, options()), HasSubstr("empty.bin' is empty"));
  EXPECT_THAT(complaint({folder / "gone.bin"}, options()), HasSubstr("gone.bin"));
  EXPECT_THAT(complaint({write("x.bin.gz", "abc")}, options()), HasSubstr("is compressed"));
  EXPECT_THAT(complaint({}, options()), HasSubstr("no files"));
}

TEST_F(FixedRecordsTest, OptionsWithoutMeaningAreRefused) {
  const fs::path path = write("x.bin", clicks(0, 10));
  EXPECT_THAT(complaint({path}, {}), HasSubstr("no fields"));
  EXPECT_THAT(complaint({path}, {.fields = {{"", Dtype::kU8, {12}}}}), HasSubstr("no fields"));
  EXPECT_THAT(complaint({path}, {.fields = {{"a", Dtype::kU8, {0}}}}), HasSubstr("no bytes"));
  EXPECT_THAT(complaint({path}, {.fields = {{"a", Dtype::kU8, {}}, {"a", Dtype::kU8, {}}}}),
              HasSubstr("'a' appears twice"));
  EXPECT_THAT(complaint({path}, {.fields = {{"a", Dtype::kU8, {4}, {{0, "n"}}}}}),
              HasSubstr("differs in length"));
  EXPECT_THAT(complaint({path}, {.fields = click_fields(), .header_bytes = -1}), HasSubstr("-1"));
  EXPECT_THAT(complaint({path}, options(FileAccess::kDirect, 0)), HasSubstr("1 to 4096"));
  EXPECT_THAT(complaint({path}, {.fields = click_fields(), .ahead_bytes = -1}), HasSubstr("-1"));
  const FixedRecords records({path}, options());
  EXPECT_THAT(error_of([&] { click_at(records, 10); }).message(),
              HasSubstr("no record 10 among 10"));
  EXPECT_THAT(error_of([&] { records.will_read(std::vector<Sample>{{-1}}); }).message(),
              HasSubstr("no record -1"));
  EXPECT_THAT(error_of([&] { records.read({0}, {}); }).message(), HasSubstr("3 destinations"));
}

/// The names may go: the files are open. Beyond those that stay open, one that is gone or another is named.
TEST_F(FixedRecordsTest, AFileThatIsGoneIsNamedWhereItHasToBeOpened) {
  const auto paths = files();
  const ShardFiles shards("file of records", paths);
  for (const bool is_direct : {false, true}) {
    const OpenFiles open(shards, is_direct, 2);
    EXPECT_LE(open.num_open(), 2);
    open.get(0), open.get(1), open.get(0), open.get(2);
    EXPECT_EQ(open.num_open(), 2);
    fs::rename(paths[0], folder / "elsewhere");
    fs::rename(paths[1], folder / "elsewhere too");
    EXPECT_TRUE(open.get(0)->is_open()) << "used after the second, so it has stayed";
    const Error gone = error_of([&] { open.get(1); });
    EXPECT_EQ(gone.kind(), ErrorKind::kIo);
    EXPECT_THAT(gone.message(), HasSubstr("1.bin"));
    write("1.bin", "another");
    EXPECT_THAT(error_of([&] { open.get(1); }).message(),
                HasSubstr("has changed since it was opened"));
    fs::rename(folder / "elsewhere", paths[0]);
    fs::rename(folder / "elsewhere too", paths[1]);
  }
}

/// More files than stay open, with records in all of them under way.
TEST_F(FixedRecordsTest, ManyFilesAreReadByFewDescriptors) {
  std::vector<fs::path> paths;
  for (int file = 0; file < 300; ++file) {
    paths.push_back(write(std::to_string(file) + ".bin", clicks(2 * file, 2 * file + 2)));
  }
  const FixedRecords records(paths, options());
  const test::FewDescriptors few(64);
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < 600; ++i) samples.push_back({i * 7 % 600});
  records.will_read(samples);
  for (const Sample& sample : samples) ASSERT_EQ(click_at(records, sample.index), sample.index);
}

TEST_F(FixedRecordsTest, OtherRecordsAreToldApartWhereAResumedRunAsks) {
  const std::string one = fingerprint(FixedRecords({write("0.bin", clicks(0, 1000))}, options()));
  EXPECT_EQ(one, fingerprint(FixedRecords({write("1.bin", clicks(0, 1000))},
                                          options(FileAccess::kBuffered))));
  EXPECT_NE(one, fingerprint(FixedRecords({write("2.bin", clicks(7, 1007))}, options())));
}

}  // namespace
}  // namespace trireme::data
