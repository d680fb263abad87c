#include "trireme/data/parallel_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/data/folder_files.h"

namespace trireme::data {
namespace {

using testing::HasSubstr;

/// Sample i is three numbers of i and the visit, and i; those of `bad` cannot be read. The first ones take the
/// longest.
class SlowSource : public Source {
 public:
  explicit SlowSource(std::set<std::int64_t> bad = {}) : bad_(std::move(bad)) {}

  std::int64_t num_samples() const override { return 1000; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override {
    ++num_read;
    std::this_thread::sleep_for(std::chrono::microseconds(sample.index < 3 ? 2000 : 10));
    if (bad_.contains(sample.index)) {
      throw Error(ErrorKind::kCorruptData, "sample " + std::to_string(sample.index) + " is bad");
    }
    auto* numbers = reinterpret_cast<std::int32_t*>(destinations[0].data());
    for (int i = 0; i < 3; ++i) {
      numbers[i] = static_cast<std::int32_t>(sample.index * 100 + sample.visit * 10 + i);
    }
    *reinterpret_cast<std::int64_t*>(destinations[1].data()) = sample.index;
  }

  mutable std::atomic<int> num_read = 0;

 private:
  std::set<std::int64_t> bad_;
  std::vector<Field> fields_ = {{"x", Dtype::kI32, {3}}, {"i", Dtype::kI64, {}}};
};

struct Columns {
  std::vector<std::int32_t> x;
  std::vector<std::int64_t> i;
  bool operator==(const Columns&) const = default;
};

Columns read(const Source& source, const std::vector<Sample>& samples, int num_threads) {
  Columns columns{.x = std::vector<std::int32_t>(3 * samples.size()),
                  .i = std::vector<std::int64_t>(samples.size())};
  const std::span<std::byte> destinations[] = {std::as_writable_bytes(std::span(columns.x)),
                                               std::as_writable_bytes(std::span(columns.i))};
  read_samples(source, samples, destinations, kernels::on_threads(num_threads));
  return columns;
}

TEST(ParallelRead, TheResultDoesNotDependOnThreads) {
  const SlowSource source;
  for (const int count : {0, 1, 2, 7, 40}) {
    std::vector<Sample> samples;
    for (int i = 0; i < count; ++i) samples.push_back({(i * 37) % 50, i % 3});
    const Columns expected = read(source, samples, 1);
    for (int i = 0; i < count; ++i) EXPECT_EQ(expected.i[i], samples[i].index);
    for (const int threads : {2, 3, 8}) {
      EXPECT_EQ(read(source, samples, threads), expected) << count << " on " << threads;
    }
  }
}

TEST(ParallelRead, TheErrorIsThatOfTheFirstSample) {
  std::vector<Sample> samples;
  for (int i = 0; i < 40; ++i) samples.push_back({i});
  for (int threads = 1; threads <= 8; ++threads) {
    const SlowSource source({2, 3, 5, 39});
    const Error error = error_of([&] { read(source, samples, threads); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_EQ(error.message(), "sample 2 is bad") << threads;
  }
  const SlowSource source({0});
  error_of([&] { read(source, samples, 1); });
  EXPECT_EQ(source.num_read, 1) << "nothing behind it need be read";
}

TEST(ParallelRead, DestinationsThatDoNotFitAreRefusedBeforeAnythingIsRead) {
  const SlowSource source;
  const std::vector<Sample> samples = {{0}, {1}};
  std::vector<std::byte> bytes(24);
  const std::span<std::byte> all(bytes);
  const auto complaint = [&](const std::vector<std::span<std::byte>>& destinations) {
    const Error error =
        error_of([&] { read_samples(source, samples, destinations, kernels::on_caller); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  };
  EXPECT_THAT(complaint({all}), HasSubstr("expected 2 destinations, got 1"));
  EXPECT_THAT(complaint({all, all}), HasSubstr("field 'i' of 2 samples takes 16 bytes, got 24"));
  EXPECT_EQ(source.num_read, 0);
}

}  // namespace
}  // namespace trireme::data
