#include "trireme/data/fixed_records.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <iostream>

#include "tests/base/few_descriptors.h"
#include "tests/data/folder_files.h"
#include "trireme/data/order.h"
#include "trireme/data/parallel_read.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

/// As of logs of clicks: 12 bytes, of which two are passed over.
std::vector<Field> click_fields() {
  return {{"label", Dtype::kU8, {}},
          {"", Dtype::kU8, {2}},
          {"id", Dtype::kI32, {}},
          {"flags", Dtype::kU8, {5}}};
}

std::string click(int id) {
  std::string record(12, '\0');
  record[0] = static_cast<char>(id % 2);
  record[1] = record[2] = '?';
  std::memcpy(record.data() + 3, &id, sizeof id);
  for (int i = 0; i < 5; ++i) record[7 + static_cast<std::size_t>(i)] = static_cast<char>(id >> i);
  return record;
}

std::string clicks(int begin, int end) {
  std::string text;
  for (int id = begin; id < end; ++id) text += click(id);
  return text;
}

/// The number of a click, or -1 where its fields contradict it.
int click_at(const Source& source, std::int64_t index) {
  std::byte label{};
  int id = -1;
  std::array<std::byte, 5> flags{};
  const std::span<std::byte> to[] = {{&label, 1}, std::as_writable_bytes(std::span(&id, 1)), flags};
  source.read({index}, to);
  const std::string expected = click(id);
  const bool is_whole = static_cast<char>(label) == expected[0] &&
                        std::memcmp(flags.data(), expected.data() + 7, flags.size()) == 0;
  return is_whole ? id : -1;
}

/// A filter of this process's system calls, for good: `number` fails with `code`.
void forbid(int number, int code) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(code)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{.len = 4, .filter = program};
  EXPECT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  EXPECT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

/// What `act` returns in a process of its own.
std::string in_child(const std::function<std::string()>& act) {
  int ends[2] = {};
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    try {
      text = act();
    } catch (const Error& error) {
      text = std::string("error ") + error.what();
    }
    const ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(written < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0; size += static_cast<std::size_t>(std::max<ssize_t>(got, 0))) {
    got = ::read(ends[0], text.data() + size, text.size() - size);
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  text.resize(size);
  return text;
}

class FixedRecordsTest : public FolderFiles {
 protected:
  static FixedRecordOptions options(FileAccess access = FileAccess::kDirect,
                                    int num_in_flight = 8) {
    return {.fields = click_fields(), .access = access, .num_in_flight = num_in_flight};
  }

  /// Three files of 1000, 1 and 4000 clicks.
  std::vector<fs::path> files() const {
    return {write("0.bin", clicks(0, 1000)), write("1.bin", clicks(1000, 1001)),
            write("2.bin", clicks(1001, 5001))};
  }

  std::string complaint(const std::vector<fs::path>& paths, FixedRecordOptions options) const {
    return error_of([&] { const FixedRecords records(paths, options); }).message();
  }
};

TEST_F(FixedRecordsTest, RecordsAreThoseOfTheFilesWhateverTheWayTheyAreRead) {
  const auto paths = files();
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
    EXPECT_THAT(records.reading(), HasSubstr(access == FileAccess::kDirect ? "past" : "through"));
  }
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

TEST_F(FixedRecordsTest, DecoratorsTellWhatIsBeneathThem) {
  const auto records = open_fixed_records(files(), options());
  const auto mixed = mix({{skip_damaged(repeat(records, {.times = 1}), {}), 1}, {records, 2}});
  EXPECT_EQ(mixed->reading(), records->reading());
  const std::vector<Sample> samples = {{0}, {1}, {2}, {3}};
  mixed->will_read(samples);
  for (const Sample& sample : samples) EXPECT_GE(click_at(*mixed, sample.index), 0);
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

/// Told or not, past the cache or through it: who reads a record that is gone is told which.
TEST_F(FixedRecordsTest, AFileThatGetsShorterIsNamedWithTheRecord) {
  for (const FileAccess access : {FileAccess::kDirect, FileAccess::kBuffered}) {
    const auto paths = files();
    const FixedRecords records(paths, options(access));
    EXPECT_EQ(click_at(records, 1001), 1001);
    fs::resize_file(paths[2], 12 * 100 + 5);
    EXPECT_EQ(click_at(records, 1100), 1100) << "what is there is read";
    for (const std::int64_t index : {1101, 5000}) {
      for (const bool is_told : {false, true}) {
        if (is_told) records.will_read(std::vector<Sample>{{index}, {7}});
        const Error error = error_of([&] { click_at(records, index); });
        EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
        EXPECT_THAT(error.message(),
                    AllOf(HasSubstr("record " + std::to_string(index - 1001) + " of '"),
                          HasSubstr("2.bin'"), HasSubstr("has got shorter")));
        EXPECT_EQ(click_at(records, 7), 7);
      }
    }
  }
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

/// As in containers, whose filter of system calls knows no io_uring.
TEST_F(FixedRecordsTest, WithoutIoUringReadsGoThroughTheCacheAndSaySo) {
  const auto paths = files();
  for (const int code : {EPERM, ENOSYS}) {
    const std::string text = in_child([&] {
      forbid(SYS_io_uring_setup, code);
      const FixedRecords records(paths, options());
      records.will_read(std::vector<Sample>{{4321}, {17}});
      return records.reading() + " " + std::to_string(click_at(records, 4321));
    });
    EXPECT_EQ(
        text,
        std::string("through the system's cache of files, since io_uring is not to be had here: ") +
            std::strerror(code) + " 4321");
  }
}

TEST_F(FixedRecordsTest, AReadThatFailsNamesFileAndRecord) {
  const auto paths = files();
  for (const FileAccess access : {FileAccess::kDirect, FileAccess::kBuffered}) {
    const std::string text = in_child([&] {
      const FixedRecords records(paths, options(access));
      forbid(SYS_pread64, EIO);
      return std::to_string(click_at(records, 1002));
    });
    EXPECT_THAT(text, AllOf(HasSubstr("cannot read record 1 of '"), HasSubstr("2.bin'"),
                            HasSubstr(std::strerror(EIO))));
  }
}

/// The kernel shows some of its own data as files, which have no O_DIRECT.
TEST_F(FixedRecordsTest, WithoutDirectReadsTheyGoThroughTheCacheAndSaySo) {
  const fs::path path = "/sys/kernel/btf/vmlinux";
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) GTEST_SKIP() << "no " << path << " here";
  const FixedRecords records({path}, {.fields = {{"bytes", Dtype::kU8, {64}}},
                                      .header_bytes = status.st_size % 64,
                                      .access = FileAccess::kDirect});
  EXPECT_THAT(records.reading(), AllOf(HasSubstr("through the system's cache of files, since '"),
                                       HasSubstr("cannot be read past the system's cache")));
  std::vector<std::byte> bytes(64), expected(64);
  const std::span<std::byte> to = bytes;
  records.read({100}, {&to, 1});
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::pread(file.number(), expected.data(), 64, status.st_size % 64 + 6400), 64);
  EXPECT_EQ(bytes, expected);
}

TEST_F(FixedRecordsTest, OtherRecordsAreToldApartWhereAResumedRunAsks) {
  const std::string one = fingerprint(FixedRecords({write("0.bin", clicks(0, 1000))}, options()));
  EXPECT_EQ(one, fingerprint(FixedRecords({write("1.bin", clicks(0, 1000))},
                                          options(FileAccess::kBuffered))));
  EXPECT_NE(one, fingerprint(FixedRecords({write("2.bin", clicks(7, 1007))}, options())));
}

}  // namespace
}  // namespace trireme::data
