// Question: how long does it take to open a million small records, how much memory do they keep, and what does a read
// at a random place cost?
//
// Each form is written into a folder of its own, then opened and read by a new process, whose resident memory counts.
// Every text that is read is compared; exit code 1 where one differs.

#include <fmt/format.h>
#include <isa-l/crc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "benchmarks/machine.h"
#include "trireme/base/random.h"
#include "trireme/data.h"
#include "trireme/data/order.h"

namespace trireme::benchmarks {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kReads = 200'000;

/// 41 to 97 letters and spaces.
std::string text_of(std::int64_t index) {
  std::uint64_t random = stream_seed(7, {static_cast<std::uint64_t>(index)});
  const auto words = 6 + random % 9;
  std::string text;
  for (std::uint64_t w = 0; w < words; ++w) {
    if (w > 0) text += ' ';
    random = random * 6364136223846793005U + 1442695040888963407U;
    for (int i = 0; i < 6; ++i) text += static_cast<char>('a' + (random >> (40 + 4 * i)) % 16);
  }
  return text;
}

template <typename Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

void write_lines(std::int64_t count, const fs::path& folder) {
  std::ofstream file(folder / "x.jsonl");
  for (std::int64_t i = 0; i < count; ++i) {
    file << "{\"text\": \"" << text_of(i) << "\", \"label\": " << i % 10 << "}\n";
  }
}

void write_rows(std::int64_t count, const fs::path& folder) {
  std::ofstream file(folder / "x.csv");
  file << "text,label\n";
  for (std::int64_t i = 0; i < count; ++i) file << '"' << text_of(i) << "\"," << i % 10 << '\n';
}

std::string checksum(std::string bytes) {
  auto* data = reinterpret_cast<unsigned char*>(bytes.data());
  const std::uint32_t crc = ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~0U);
  return bytes_of(std::rotr(crc, 15) + 0xA282EAD8U);
}

/// A part of a message of up to 127 bytes.
std::string part(char number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

void write_tfrecord(std::int64_t count, const fs::path& folder) {
  std::ofstream file(folder / "x.tfrecord", std::ios::binary);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string value = part(2, part(1, part(1, text_of(i))));
    const std::string message = part(1, part(1, part(1, "text") + value));
    const std::string length = bytes_of(std::uint64_t{message.size()});
    file << length << checksum(length) << message << checksum(message);
  }
}

void write_mds(std::int64_t count, const fs::path& folder) {
  std::string ends = bytes_of(static_cast<std::uint32_t>(count)), samples;
  const auto head = static_cast<std::size_t>(4 * (count + 2));
  for (std::int64_t i = 0; i < count; ++i) {
    ends += bytes_of(static_cast<std::uint32_t>(head + samples.size()));
    const std::string text = text_of(i);
    samples += bytes_of(static_cast<std::uint32_t>(text.size())) + text;
  }
  ends += bytes_of(static_cast<std::uint32_t>(head + samples.size()));
  std::ofstream(folder / "0.mds", std::ios::binary) << ends << samples;
  std::ofstream(folder / "index.json") << fmt::format(
      R"({{"version": 2, "shards": [{{"version": 2, "format": "mds", "samples": {}, "compression": null,
"column_names": ["text"], "column_encodings": ["str"], "column_sizes": [null],
"raw_data": {{"basename": "0.mds", "bytes": {}}}, "zip_data": null}}]}})",
      count, ends.size() + samples.size());
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// Returns how many texts differ.
int measure(const char* form, const fs::path& folder) {
  const double before = resident_mib();
  auto begin = Clock::now();
  const auto records = data::open_records({folder});
  const double open = seconds_since(begin);
  const double kept = resident_mib() - before;
  begin = Clock::now();
  const std::string identity = records->identity();
  const double identify = seconds_since(begin);
  const std::int64_t count = records->num_records();
  const data::SampleOrder order(count, 1);
  std::vector<std::vector<std::byte>> texts;
  begin = Clock::now();
  for (std::int64_t i = 0; i < kReads; ++i) {
    texts.push_back(records->read(order.sample_at(i), "text"));
  }
  const double read = seconds_since(begin);
  int wrong = 0;
  for (std::int64_t i = 0; i < kReads; ++i) {
    const auto& text = texts[static_cast<std::size_t>(i)];
    const std::string_view found(reinterpret_cast<const char*>(text.data()), text.size());
    if (text_of(order.sample_at(i)) != found) ++wrong;
  }
  fmt::print(
      "{:<9} records {}  opened in {:.3f} s, identity {:.3f} s  memory kept {:.1f} MiB  read "
      "{:.2f} us  wrong {}\n",
      form, count, open, identify, kept, read / kReads * 1e6, wrong);
  std::fflush(stdout);
  return wrong;
}

/// Exit code: 1 where texts differ, or a process failed.
int run(std::int64_t count) {
  const Machine machine;
  fmt::print("load before: {}\n", machine.load());
  std::fflush(stdout);
  const fs::path folder =
      fs::temp_directory_path() / ("trireme_records_bench_" + std::to_string(::getpid()));
  const std::pair<const char*, void (*)(std::int64_t, const fs::path&)> forms[] = {
      {"jsonl", write_lines},
      {"csv", write_rows},
      {"tfrecord", write_tfrecord},
      {"mds", write_mds}};
  int result = 0;
  for (const auto& [form, write] : forms) {
    fs::create_directories(folder / form);
    write(count, folder / form);
    const pid_t child = ::fork();
    if (child == 0) std::_Exit(measure(form, folder / form) > 0 ? 1 : 0);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) result = 1;
  }
  fs::remove_all(folder);
  return result;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  const std::int64_t count = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  return count > 0 ? trireme::benchmarks::run(count) : 2;
}
