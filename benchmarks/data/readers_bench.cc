// Question: how many samples a second does a reader rank feed, beside the same samples read by the rank that wants them?
//
//     readers_bench FOLDER [SIZE] [COUNT]      a folder with a subfolder for each class; sides of a sample, 224; samples, 512
//
// Two ranks on this host, a core each. `images`: decoded, cropped, normalised. `ready`: samples of the same bytes that lie in memory,
// so that only what moves them is left. Read here, and by the other rank, in turn, by one thread; batches of 32, the next one asked
// for while one is taken. Bytes are compared first; exit code 1 where one differs.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "packs/vision/data/image_source.h"
#include "trireme/collectives.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/engine/readers/remote_source.h"
#include "trireme/engine/readers/sample_server.h"
#include "trireme/error.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::benchmarks {
namespace {

constexpr std::int64_t kBatch = 32;
constexpr int kRounds = 5;

using SourcePtr = std::shared_ptr<const data::Source>;

/// One after the other, on so many threads.
class Reading {
 public:
  explicit Reading(const data::Source& source) : source_(source) {
    for (const data::Field& field : source.fields()) bytes_of_sample_ += field.num_bytes();
    bytes_.resize(static_cast<std::size_t>(kBatch * bytes_of_sample_));
  }

  /// So many samples of a visit; `each` gets the bytes of every batch.
  void run(std::int64_t count, std::int64_t visit,
           const std::function<void(std::span<const std::byte>)>& each = {}) {
    std::vector<data::Sample> now = batch_at(0, visit);
    source_.will_read(now);
    for (std::int64_t begin = 0; begin < count; begin += kBatch) {
      std::vector<data::Sample> next = batch_at(begin + kBatch, visit);
      if (begin + kBatch < count) source_.will_read(next);
      for (std::int64_t i = 0; i < kBatch; ++i) read(now[static_cast<std::size_t>(i)], i);
      if (each) each(bytes_);
      now = std::move(next);
    }
  }

  std::int64_t bytes_of_sample() const { return bytes_of_sample_; }

 private:
  std::vector<data::Sample> batch_at(std::int64_t begin, std::int64_t visit) const {
    std::vector<data::Sample> samples;
    for (std::int64_t i = begin; i < begin + kBatch; ++i)
      samples.push_back({i % source_.num_samples(), visit});
    return samples;
  }

  void read(data::Sample sample, std::int64_t place) {
    std::span<std::byte> rest =
        std::span(bytes_).subspan(static_cast<std::size_t>(place * bytes_of_sample_),
                                  static_cast<std::size_t>(bytes_of_sample_));
    std::vector<std::span<std::byte>> places;
    for (const data::Field& field : source_.fields()) {
      places.push_back(rest.first(static_cast<std::size_t>(field.num_bytes())));
      rest = rest.subspan(places.back().size());
    }
    source_.read(sample, places);
  }

  const data::Source& source_;
  std::int64_t bytes_of_sample_ = 0;
  std::vector<std::byte> bytes_;
};

double samples_per_s(const data::Source& source, std::int64_t count, std::int64_t visit) {
  Reading reading(source);
  const auto begin = std::chrono::steady_clock::now();
  reading.run(count, visit);
  return static_cast<double>(count) /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<std::byte> bytes_of(const data::Source& source, std::int64_t count) {
  std::vector<std::byte> all;
  Reading(source).run(count, 0, [&](std::span<const std::byte> batch) {
    all.insert(all.end(), batch.begin(), batch.end());
  });
  return all;
}

/// This rank's part of what `use` does with a source that the other rank reads.
void with_reader(World& world, const SourcePtr& source,
                 const std::function<void(const data::Source&)>& use) {
  const collectives::World& ranks = world.value();
  if (world.rank() == 1) {
    readers::SampleServer server({source}, ranks.endpoint, 1, 1, program::error_of);
    server.wait();
    return;
  }
  const auto link = std::make_shared<readers::ReaderLink>(ranks.endpoint, 1, ranks.watch);
  use(readers::RemoteSource(source, 0, link));
  link->end();
}

double middle(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void compare(World& world, const SourcePtr& source, std::int64_t count) {
  with_reader(world, source, [&](const data::Source& remote) {
    if (bytes_of(remote, count) != bytes_of(*source, count))
      throw Error(ErrorKind::kCorruptData, "a reader rank gave other bytes");
  });
}

void measure(World& world, const SourcePtr& source, const std::string& name, std::int64_t count) {
  std::vector<double> here, there;
  for (int round = 0; round < kRounds; ++round) {
    if (world.rank() == 0) here.push_back(samples_per_s(*source, count, 2 * round));
    with_reader(world, source, [&](const data::Source& remote) {
      there.push_back(samples_per_s(remote, count, 2 * round + 1));
    });
  }
  if (world.rank() != 0) return;
  const double mb = static_cast<double>(Reading(*source).bytes_of_sample()) / 1e6;
  fmt::print(
      "{:<7} here {:>8.0f} samples/s  by a reader rank {:>8.0f} samples/s, {:.2f} of that, {:.0f} "
      "MB/s\n",
      name, middle(here), middle(there), middle(there) / middle(here), middle(there) * mb);
  std::fflush(stdout);
}

void run(World& world, const std::string& folder, std::int64_t size, std::int64_t count) {
  const auto images = std::make_shared<vision::ImageSource>(
      vision::open_images({folder}),
      vision::ImageOptions{.size = size, .random = vision::RandomCropOptions{}});
  const auto pixels = static_cast<std::size_t>(3 * size * size);
  const auto ready = std::make_shared<data::InMemorySource>(
      kBatch, std::vector<data::InMemorySource::Column>{
                  {images->fields()[0],
                   data::share(std::vector<float>(pixels * static_cast<std::size_t>(kBatch), 1))}});
  compare(world, images, std::min<std::int64_t>(count, 128));
  measure(world, images, "images", count);
  measure(world, ready, "ready", count);
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  namespace tb = trireme::benchmarks;
  if (argc < 2) {
    fmt::print(stderr, "usage: readers_bench FOLDER [SIZE] [COUNT]\n");
    return 2;
  }
  return trireme::run_ranks(argc, argv, 2, [&](trireme::World& world) {
    std::optional<tb::Machine> machine;
    if (world.rank() == 0) fmt::print("load before: {}\n", machine.emplace().load());
    tb::run(world, argv[1], argc > 2 ? std::stoll(argv[2]) : 224,
            argc > 3 ? std::stoll(argv[3]) : 512);
  });
}
