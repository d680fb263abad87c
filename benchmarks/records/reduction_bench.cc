// Question: does reading ahead disturb the sums over replicas, and would it help to hold it back while they run?
//
// Two ranks compute for some milliseconds, then add up 8 MiB, over and over; beside that a thread of each reads records of 160 bytes
// from a file that is not in the system's cache, as fast as it can, past the cache or through it. `held`: it begins no read while
// its rank adds up. Every record is compared; exit code 1 where one differs.

#include <ATen/Functions.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "benchmarks/machine.h"
#include "trireme/base/descriptor.h"
#include "trireme/collectives.h"
#include "trireme/data.h"
#include "trireme/data/order.h"
#include "trireme/error.h"

namespace trireme::benchmarks {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRecordBytes = 160, kNumRecords = 6'700'000, kStepBatch = 2048;
constexpr int kSteps = 100;
constexpr auto kCompute = std::chrono::milliseconds(3);

void write_numbered(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  std::vector<std::int64_t> words(65'536 * kRecordBytes / 8);
  for (std::int64_t begin = 0; begin < kNumRecords; begin += 65'536) {
    const std::int64_t count = std::min<std::int64_t>(65'536, kNumRecords - begin);
    for (std::int64_t i = 0; i < count; ++i) words[static_cast<std::size_t>(i * 20)] = begin + i;
    const auto bytes = static_cast<std::size_t>(count * kRecordBytes);
    if (::write(file.number(), words.data(), bytes) != static_cast<ssize_t>(bytes)) std::exit(1);
  }
  ::fsync(file.number());
}

enum class Beside : std::uint8_t { kNothing, kDirect, kDirectHeld, kBuffered, kBufferedHeld };
constexpr const char* kBesideNames[] = {"nothing", "past the cache", "past the cache, held",
                                        "through the cache", "through the cache, held"};

/// Reads until it ends, in an order of the rank's own.
class BesideReader {
 public:
  BesideReader(const fs::path& path, Beside beside, int rank) {
    if (beside == Beside::kNothing) return;
    const bool is_direct = beside == Beside::kDirect || beside == Beside::kDirectHeld;
    holds_ = beside == Beside::kDirectHeld || beside == Beside::kBufferedHeld;
    source_ = data::open_fixed_records(
        {path}, {.fields = {{"words", Dtype::kI64, {kRecordBytes / 8}}},
                 .access = is_direct ? data::FileAccess::kDirect : data::FileAccess::kBuffered});
    thread_ = std::jthread([this, rank](const std::stop_token& stop) {
      try {
        read_on(rank, stop);
      } catch (...) {
        failure_ = std::current_exception();
      }
    });
  }

  /// A sum may have failed while reading was held.
  ~BesideReader() { end(); }
  BesideReader(const BesideReader&) = delete;
  BesideReader& operator=(const BesideReader&) = delete;

  /// Ends reading. Throws what ended it before.
  void finish() {
    end();
    if (failure_) std::rethrow_exception(failure_);
  }

  void hold() { is_held_ = holds_; }
  void release() {
    is_held_ = false;
    is_held_.notify_all();
  }
  std::int64_t num_read() const { return num_read_; }
  std::int64_t num_wrong() const { return num_wrong_; }

 private:
  void end() {
    thread_.request_stop();
    release();
    if (thread_.joinable()) thread_.join();
  }

  std::vector<data::Sample> batch_at(const data::SampleOrder& order, std::int64_t begin) const {
    std::vector<data::Sample> samples;
    for (std::int64_t i = begin; i < begin + kStepBatch; ++i)
      samples.push_back({order.sample_at(i)});
    return samples;
  }

  void read_on(int rank, const std::stop_token& stop) {
    const data::SampleOrder order(kNumRecords, static_cast<std::uint64_t>(rank));
    std::vector<data::Sample> batch = batch_at(order, 0);
    source_->will_read(batch);
    for (std::int64_t begin = kStepBatch; !stop.stop_requested(); begin += kStepBatch) {
      std::vector<data::Sample> next = batch_at(order, begin);
      source_->will_read(next);
      for (const data::Sample& sample : batch) {
        is_held_.wait(true);
        if (stop.stop_requested()) return;
        std::int64_t words[kRecordBytes / 8] = {};
        const std::span<std::byte> to = std::as_writable_bytes(std::span(words));
        source_->read(sample, {&to, 1});
        ++num_read_;
        if (words[0] != sample.index) ++num_wrong_;
      }
      batch = std::move(next);
    }
  }

  std::shared_ptr<const data::Source> source_;
  bool holds_ = false;
  std::atomic<bool> is_held_ = false;
  std::atomic<std::int64_t> num_read_ = 0, num_wrong_ = 0;
  std::exception_ptr failure_;  ///< Of the thread, once it has ended.
  std::jthread thread_;         ///< Last: it uses the others.
};

/// The same work each time.
class Compute {
 public:
  /// Of about `time` where nobody disturbs.
  explicit Compute(std::chrono::milliseconds time) {
    const auto begin = Clock::now();
    int passes = 0;
    for (; Clock::now() < begin + 10 * time; ++passes) pass();
    num_passes_ = std::max(1, passes / 10);
  }

  void run() {
    for (int i = 0; i < num_passes_; ++i) pass();
  }

 private:
  void pass() {
    for (float& value : values_) value = value * 0.999F + 0.001F;
  }

  std::vector<float> values_ = std::vector<float>(32'768, 1);
  int num_passes_ = 1;
};

double middle(std::vector<double> values, double part = 0.5) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

/// Returns how many records were wrong.
std::int64_t run_beside(World& world, Compute& compute, const fs::path& path, Beside beside) {
  if (world.rank() == 0) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);
  }
  const at::Tensor gradients = at::zeros({2 << 20});
  world.all_reduce(gradients);
  BesideReader reader(path, beside, world.rank());
  std::vector<double> sums, steps;
  const auto begin = Clock::now();
  for (int step = 0; step < kSteps; ++step) {
    const auto first = Clock::now();
    compute.run();
    reader.hold();
    const auto before = Clock::now();
    world.all_reduce(gradients);
    const auto end = Clock::now();
    reader.release();
    sums.push_back(std::chrono::duration<double, std::milli>(end - before).count());
    steps.push_back(std::chrono::duration<double, std::milli>(end - first).count());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const std::int64_t num_read = reader.num_read();
  reader.finish();
  if (world.rank() == 0) {
    fmt::print(
        "{:<26} sum {:6.2f} ms (p95 {:6.2f})  step {:6.2f} ms  {:>8.0f} records/s  wrong {}\n",
        kBesideNames[static_cast<int>(beside)], middle(sums), middle(sums, 0.95), middle(steps),
        static_cast<double>(num_read) / seconds, reader.num_wrong());
    std::fflush(stdout);
  }
  return reader.num_wrong();
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  namespace tb = trireme::benchmarks;
  const auto path = std::filesystem::temp_directory_path() / "trireme_reduction_bench";
  return trireme::run_ranks(argc, argv, 2, [&](trireme::World& world) {
    std::optional<tb::Machine> machine;
    if (world.rank() == 0) {
      machine.emplace();
      fmt::print("load before: {}\n", machine->load());
      tb::write_numbered(path);
    }
    world.all_reduce(at::zeros({1}));  // the file is there
    tb::Compute compute(tb::kCompute);
    std::int64_t wrong = 0;
    for (int round = 0; round < 3; ++round) {
      for (int beside = 0; beside < 5; ++beside) {
        wrong += tb::run_beside(world, compute, path, static_cast<tb::Beside>(beside));
      }
    }
    if (world.rank() == 0) std::filesystem::remove(path);
    if (wrong > 0) throw trireme::Error(trireme::ErrorKind::kCorruptData, "records were wrong");
  });
}
