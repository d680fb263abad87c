// Question: how many rows of Parquet and Arrow files are read in a second of processor time, in order and shuffled, beside pyarrow,
// which keeps as many bytes decoded (tables_peer.py)?
//
// Images of 10 KB in groups of 100 rows, texts of 75 bytes in groups of 256, each with a label, which is read too. Each measurement
// is a new process; ours and pyarrow's alternate. Every row is looked at; exit code 1 where one is wrong.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "trireme/data.h"
#include "trireme/data/order.h"

namespace trireme::benchmarks {
namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 3;
constexpr std::size_t kImageBytes = 10'240, kTextBytes = 75;
constexpr const char* kPeer = "benchmarks/records/tables_peer.py";

struct TableCase {
  std::string name, file, column;
  bool is_shuffled = false;
  std::int64_t keep_bytes = 0;
  std::int64_t num_reads = 0;  ///< 0: each row once.
};

struct TableResult {
  double rows = 0, busy_seconds = 0, wrong = 0;
  double rows_per_s() const { return rows / std::max(busy_seconds, 1e-9); }
};

std::int64_t number_of(std::span<const std::byte> bytes) {
  std::int64_t number = -1;
  if (bytes.size() >= sizeof number) std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

bool is_right(const TableCase& one, std::int64_t index, const std::vector<std::byte>& value,
              const std::vector<std::byte>& label) {
  if (label.size() != sizeof index || number_of(label) != index % 1000) return false;
  if (one.column == "text") {
    const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
    return text.size() == kTextBytes && text.starts_with(fmt::format("{:08}", index));
  }
  return value.size() == kImageBytes && number_of(value) == index &&
         number_of(std::span(value).last(sizeof index)) == index;
}

double processor_seconds() {
  struct rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

TableResult read_table(const TableCase& one, const fs::path& folder) {
  const auto records = data::open_records({folder / one.file}, {.cache_bytes = one.keep_bytes});
  const std::int64_t count = one.num_reads > 0 ? one.num_reads : records->num_records();
  const data::SampleOrder order(
      records->num_records(), 1,
      one.is_shuffled ? data::OrderKind::kShuffled : data::OrderKind::kSequential);
  TableResult result{.rows = static_cast<double>(count)};
  const double begin = processor_seconds();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t index = order.sample_at(i);
    const auto value = records->read(index, one.column);
    if (!is_right(one, index, value, records->read(index, "label"))) ++result.wrong;
  }
  result.busy_seconds = processor_seconds() - begin;
  return result;
}

/// What a process that `command` starts prints: rows, seconds, wrong ones.
TableResult printed_by(const std::string& command) {
  TableResult result{.wrong = 1};
  std::FILE* output = ::popen(command.c_str(), "r");
  const bool is_whole = output != nullptr && std::fscanf(output, "%lf %lf %lf", &result.rows,
                                                         &result.busy_seconds, &result.wrong) == 3;
  if (output != nullptr && ::pclose(output) == 0 && is_whole) return result;
  fmt::print("failed: {}\n", command);
  return {.wrong = 1};
}

std::string quoted(const std::string& word) { return "'" + word + "'"; }

std::string python() {
  return ::access(".venv/bin/python", X_OK) == 0 ? ".venv/bin/python" : "python3";
}

/// Of ours, in a process of its own.
TableResult ours_of(const TableCase& one, const fs::path& folder) {
  int ends[2] = {};
  if (::pipe(ends) != 0) return {.wrong = 1};
  const pid_t child = ::fork();
  if (child == 0) {
    const TableResult result = read_table(one, folder);
    std::_Exit(::write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  ::close(ends[1]);
  TableResult result;
  if (::read(ends[0], &result, sizeof result) != sizeof result) result = {.wrong = 1};
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return result;
}

TableResult peers_of(const TableCase& one, const fs::path& folder, std::int64_t num_rows) {
  return printed_by(fmt::format("{} -B {} read {} {} {} {} {}", python(), kPeer,
                                quoted(folder / one.file), one.column,
                                one.is_shuffled ? "shuffled" : "in_order", one.keep_bytes,
                                one.num_reads > 0 ? one.num_reads : num_rows));
}

double middle_of(std::vector<TableResult> results) {
  std::ranges::sort(results, {}, &TableResult::rows_per_s);
  return results[results.size() / 2].rows_per_s();
}

/// Returns how many rows were wrong.
double run_table(const TableCase& one, const fs::path& folder, std::int64_t num_rows) {
  std::vector<TableResult> ours, peers;
  double wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(ours_of(one, folder));
    peers.push_back(peers_of(one, folder, num_rows));
    wrong += ours.back().wrong + peers.back().wrong;
  }
  fmt::print("{:<44} {:>10.0f} {:>10.0f} {:>7.2f}  wrong {}\n", one.name, middle_of(ours),
             middle_of(peers), middle_of(ours) / middle_of(peers), wrong);
  std::fflush(stdout);
  return wrong;
}

/// Exit code: 1 where rows are wrong.
int run_tables(std::int64_t num_rows) {
  const Machine machine;
  fmt::print("load before: {}\n", machine.load());
  if (std::system((python() + " -B -c 'import pyarrow' 2>/dev/null").c_str()) != 0 ||
      !fs::exists(kPeer)) {
    fmt::print(
        "left out: no pyarrow; ./dev test installs it. Start it from the repository's root\n");
    return 0;
  }
  const fs::path folder =
      fs::temp_directory_path() / ("trireme_tables_bench_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::fflush(stdout);
  const std::string write =
      fmt::format("{} -B {} write {} {}", python(), kPeer, quoted(folder), num_rows);
  if (std::system(write.c_str()) != 0) return 1;
  constexpr std::int64_t kMiB = 1 << 20;
  const std::int64_t third = num_rows * static_cast<std::int64_t>(kImageBytes) / 3;
  const TableCase cases[] = {
      {"images, Parquet, in order, 8 MiB kept", "images.parquet", "image", false, 8 * kMiB},
      {"the same, twice, all kept", "images.parquet", "image", false, 4096 * kMiB, 2 * num_rows},
      {"shuffled, twice, all kept", "images.parquet", "image", true, 4096 * kMiB, 2 * num_rows},
      {"shuffled, a third kept", "images.parquet", "image", true, third},
      {"images, Arrow mapped, shuffled, twice", "images.arrow", "image", true, 8 * kMiB,
       2 * num_rows},
      {"texts, Parquet, in order, 8 MiB kept", "texts.parquet", "text", false, 8 * kMiB},
      {"texts, Parquet, shuffled, 64 KiB kept", "texts.parquet", "text", true, kMiB / 16},
  };
  fmt::print("{:<44} {:>10} {:>10} {:>7}   rows a second of processor time, {} rows\n", "", "ours",
             "pyarrow", "ratio", num_rows);
  double wrong = 0;
  for (const TableCase& one : cases) wrong += run_table(one, folder, num_rows);
  fs::remove_all(folder);
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  const std::int64_t rows = argc > 1 ? std::atoll(argv[1]) : 6'000;
  return rows > 0 ? trireme::benchmarks::run_tables(rows) : 2;
}
