// Question: how fast are records of 160 bytes read (a click log's), from the disk and from the system's cache, in order and
// shuffled, beside a plain loop of pread and beside mmap?
//
// Every record that is read is compared; exit code 1 where one differs. `cold`: the file's pages are dropped from the cache before.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "benchmarks/machine.h"
#include "trireme/base/descriptor.h"
#include "trireme/base/mapped_file.h"
#include "trireme/data.h"
#include "trireme/data/order.h"

namespace trireme::benchmarks {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kWords = 40;
constexpr std::int64_t kBatch = 2048;
constexpr int kRounds = 3;
using Record = std::array<std::int32_t, kWords>;

Record record_of(std::int64_t index) {
  Record record{};
  for (std::int64_t w = 0; w < kWords; ++w) {
    record[static_cast<std::size_t>(w)] = static_cast<std::int32_t>(index * 2654435761 + w * 40503);
  }
  return record;
}

void write_records(const fs::path& path, std::int64_t count) {
  const Descriptor file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  std::vector<Record> records;
  for (std::int64_t i = 0; i < count; ++i) {
    records.push_back(record_of(i));
    if (std::ssize(records) < 65'536 && i + 1 < count) continue;
    const auto bytes = std::as_bytes(std::span(records));
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t done = ::write(file.number(), bytes.data() + at, bytes.size() - at);
      if (done < 0) std::perror("write"), std::exit(1);
      at += static_cast<std::size_t>(done);
    }
    records.clear();
  }
  ::fsync(file.number());
}

void drop_cache(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);
}

void fill_cache(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<std::byte> piece(1 << 20);
  while (::read(file.number(), piece.data(), piece.size()) > 0) {
  }
}

double busy_seconds() {
  struct rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// What reads the records of batches, one after the other, into `to`.
struct Way {
  std::string name;
  std::function<void(const std::vector<data::Sample>&)> announce;
  std::function<void(std::int64_t index, Record& to)> read;
  std::shared_ptr<const void> owner;
};

Way ours(const std::string& name, const fs::path& path, const data::FixedRecordOptions& options,
         bool is_told = true) {
  const auto source = data::open_fixed_records({path}, options);
  return {.name = name,
          .announce =
              [source, is_told](const auto& samples) {
                if (is_told) source->will_read(samples);
              },
          .read =
              [source](std::int64_t index, Record& to) {
                const std::span<std::byte> bytes = std::as_writable_bytes(std::span(to));
                source->read({index}, {&bytes, 1});
              },
          .owner = source};
}

Way plain_pread(const fs::path& path) {
  const auto file = std::make_shared<Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return {.name = "pread",
          .announce = [](const auto&) {},
          .read =
              [file](std::int64_t index, Record& to) {
                const auto begin = index * static_cast<std::int64_t>(sizeof to);
                if (::pread(file->number(), to.data(), sizeof to, begin) != sizeof to) to = {};
              },
          .owner = file};
}

/// In shuffled order the system is told that it is one: else it reads 128 KiB for each record.
Way mapped(const fs::path& path, bool is_shuffled) {
  const auto file = std::make_shared<const MappedFile>(path);
  const auto bytes = file->bytes();
  ::posix_madvise(const_cast<std::byte*>(bytes.data()), bytes.size(),
                  is_shuffled ? POSIX_MADV_RANDOM : POSIX_MADV_SEQUENTIAL);
  return {.name = "mmap",
          .announce = [](const auto&) {},
          .read =
              [file](std::int64_t index, Record& to) {
                std::memcpy(to.data(), file->bytes().data() + index * sizeof to, sizeof to);
              },
          .owner = file};
}

struct Result {
  double records_per_s = 0, busy_us = 0;
  std::int64_t wrong = 0;
};

/// Reads `count` records in batches, told one ahead, as a training does.
Result measure(const Way& way, const data::SampleOrder& order, std::int64_t count) {
  Result result;
  const auto batch_at = [&](std::int64_t begin) {
    std::vector<data::Sample> samples;
    for (std::int64_t i = begin; i < std::min(count, begin + kBatch); ++i) {
      samples.push_back({order.sample_at(i)});
    }
    return samples;
  };
  const double busy_before = busy_seconds();
  const auto begin = Clock::now();
  std::vector<data::Sample> batch = batch_at(0);
  way.announce(batch);
  std::vector<Record> records(kBatch);
  for (std::int64_t first = 0; first < count; first += kBatch) {
    std::vector<data::Sample> next = batch_at(first + kBatch);
    if (!next.empty()) way.announce(next);
    for (std::size_t i = 0; i < batch.size(); ++i) way.read(batch[i].index, records[i]);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (records[i] != record_of(batch[i].index)) ++result.wrong;
    }
    batch = std::move(next);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.records_per_s = static_cast<double>(count) / seconds;
  result.busy_us = (busy_seconds() - busy_before) / static_cast<double>(count) * 1e6;
  return result;
}

/// The middle of the rounds, by speed.
Result middle(std::vector<Result> results) {
  std::ranges::sort(results, {}, &Result::records_per_s);
  Result result = results[results.size() / 2];
  result.wrong = 0;
  for (const Result& one : results) result.wrong += one.wrong;
  return result;
}

std::vector<std::function<Way()>> ways(const fs::path& path, bool is_shuffled) {
  const auto options = [](data::FileAccess access, int num_in_flight = 64) {
    return data::FixedRecordOptions{.fields = {{"words", Dtype::kI32, {kWords}}},
                                    .access = access,
                                    .num_in_flight = num_in_flight};
  };
  std::vector<std::function<Way()>> result;
  for (const int num_in_flight : {1, 4, 16, 64, 256}) {
    result.emplace_back([=] {
      return ours(fmt::format("direct, {} at a time", num_in_flight), path,
                  options(data::FileAccess::kDirect, num_in_flight));
    });
  }
  if (is_shuffled) {  // in order each record would be a read of its own
    result.emplace_back(
        [=] { return ours("direct, not told", path, options(data::FileAccess::kDirect), false); });
  }
  result.emplace_back([=] { return ours("buffered", path, options(data::FileAccess::kBuffered)); });
  result.emplace_back([=] { return plain_pread(path); });
  result.emplace_back([=] { return mapped(path, is_shuffled); });
  return result;
}

struct Case {
  std::string name;
  bool is_cold;
  data::OrderKind order;
  std::int64_t count;
};

/// Returns how many records differ.
std::int64_t run_case(const fs::path& path, std::int64_t num_records, const Case& one) {
  fmt::print("\n{}: {} of {} records\n", one.name, one.count, num_records);
  std::map<std::string, std::vector<Result>> results;
  std::vector<std::string> names;
  for (int round = 0; round < kRounds; ++round) {
    const data::SampleOrder order(num_records, static_cast<std::uint64_t>(round), one.order);
    for (const auto& make : ways(path, one.order == data::OrderKind::kShuffled)) {
      one.is_cold ? drop_cache(path) : fill_cache(path);
      const Way way = make();
      if (round == 0) names.push_back(way.name);
      results[way.name].push_back(measure(way, order, one.count));
    }
  }
  std::int64_t wrong = 0;
  for (const std::string& name : names) {
    const Result result = middle(results[name]);
    wrong += result.wrong;
    fmt::print(
        "{:<22} {:>10.0f} records/s {:>8.1f} MB/s  computing {:>6.2f} us a record  wrong {}\n",
        name, result.records_per_s, result.records_per_s * sizeof(Record) * 1e-6, result.busy_us,
        result.wrong);
    std::fflush(stdout);
  }
  return wrong;
}

/// Exit code: 1 where records differ.
int run(std::int64_t num_records, const fs::path& folder) {
  const Machine machine;
  fmt::print("load before: {}\n", machine.load());
  const fs::path path = folder / ("trireme_fixed_bench_" + std::to_string(::getpid()));
  write_records(path, num_records);
  const std::int64_t few = std::min<std::int64_t>(num_records, 20'000);
  const std::int64_t many = std::min<std::int64_t>(num_records, 1'000'000);
  std::int64_t wrong = 0;
  for (const Case& one :
       {Case{"cold, shuffled", true, data::OrderKind::kShuffled, few},
        Case{"cold, in order", true, data::OrderKind::kSequential, many},
        Case{"in the cache, shuffled", false, data::OrderKind::kShuffled, 2 * few},
        Case{"in the cache, in order", false, data::OrderKind::kSequential, many}}) {
    wrong += run_case(path, num_records, one);
  }
  fs::remove(path);
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  const std::int64_t count = argc > 1 ? std::atoll(argv[1]) : 6'700'000;
  const std::filesystem::path folder =
      argc > 2 ? std::filesystem::path(argv[2]) : std::filesystem::temp_directory_path();
  return count > 0 ? trireme::benchmarks::run(count, folder) : 2;
}
