#include "trireme/engine/measure/link_measure.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <span>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/engine/measure/host_facts.h"
#include "trireme/engine/measure/repeats.h"
#include "trireme/wire/channel/channel.h"

namespace trireme::measure {
namespace {

constexpr std::size_t kColdBytes = std::size_t{32} << 20;  // more than a core's caches
constexpr std::int64_t kPricedBytes = std::int64_t{1} << 20;

constexpr transport::Tag kMessages = 0x6c696e6b;  // nothing else is under way meanwhile

/// Compute that fits into a core's cache: waits that must not leave the core idle are made of it.
class BusyWork {
 public:
  void slice() {
    constexpr float kDecay = 0.999F;
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] = kDecay * sums_[i] + terms_[i];
  }

 private:
  static constexpr std::size_t kNumFloats = 8 << 10;
  std::vector<float> sums_ = std::vector<float>(kNumFloats, 1.0F);
  std::vector<float> terms_ = std::vector<float>(kNumFloats, 0.5F);
};

/// Memory for one message after another, each where none was for long: as in a step.
class Messages {
 public:
  explicit Messages(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)), memory_(std::max(bytes_, kColdBytes)) {}

  std::span<std::byte> next() {
    if (begin_ + bytes_ > memory_.size()) begin_ = 0;
    const std::span<std::byte> message = std::span(memory_).subspan(begin_, bytes_);
    begin_ += (bytes_ + 63) / 64 * 64;
    return message;
  }

  /// One whose bytes this core has just written.
  std::span<std::byte> next_written() {
    const std::span<std::byte> message = next();
    std::ranges::fill(message, std::byte{1});
    return message;
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::size_t begin_ = 0;
};

/// Of all threads of this process.
Microseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

enum class Meanwhile { kSleep, kCompute };

class LinkTimer {
 public:
  /// watch   of each message; outlives the timer.
  LinkTimer(transport::Endpoint& endpoint, const transport::WatchOptions& watch,
            Meanwhile meanwhile)
      : endpoint_(endpoint), watch_(watch), meanwhile_(meanwhile) {}

  /// Median one-way time; 0 on ranks that do not know it.
  double one_way_us(std::int64_t bytes, int num_round_trips) {
    constexpr int kWarmups = 2;
    const int rank = endpoint_.rank();
    if (rank == 1) {
      answer(bytes, num_round_trips + kWarmups);
      return 0;
    }
    if (rank > 1) {
      std::byte end;
      if (meanwhile_ == Meanwhile::kCompute) wait(recv(0, {&end, 1}), 0);
      return 0;
    }
    std::vector<double> times = ask(bytes, num_round_trips + kWarmups);
    for (int other = 2; meanwhile_ == Meanwhile::kCompute && other < endpoint_.world_size();
         ++other) {
      const std::byte end{};
      wait(channel(other).send({&end, 1}), other);
    }
    times.erase(times.begin(), times.begin() + kWarmups);
    return median(std::move(times)) / 2;
  }

  /// Processor time of the first rank for a question and its answer, which is that of both ranks
  /// for one message.
  double processor_us() const { return processor_us_; }

 private:
  channel::Channel channel(int peer) { return {endpoint_, peer, kMessages}; }

  transport::WorkPtr recv(int peer, std::span<std::byte> memory) {
    return channel(peer).recv([memory](std::size_t) { return memory; });
  }

  void wait(const transport::WorkPtr& work, int peer) {
    transport::Awaited message = transport::message_work(*work, endpoint_, peer);
    if (meanwhile_ == Meanwhile::kCompute) message.meanwhile = [this] { busy_.slice(); };
    transport::await(message, watch_,
                     {.rank = endpoint_.rank(), .operation = "message of the profile"});
  }

  std::vector<double> ask(std::int64_t bytes, int num_round_trips) {
    Messages sent(bytes), received(bytes);
    std::vector<double> times;
    Microseconds processor{0};
    for (int i = 0; i < num_round_trips; ++i) {
      const transport::WorkPtr answer = recv(1, received.next());
      const std::span<std::byte> message = sent.next_written();
      const Microseconds processor_before = processor_time();
      const Clock::time_point start = Clock::now();
      const transport::WorkPtr question = channel(1).send(message);
      wait(answer, 1);
      times.push_back(Microseconds(Clock::now() - start).count());
      wait(question, 1);
      processor += processor_time() - processor_before;
    }
    processor_us_ = processor.count() / num_round_trips;
    return times;
  }

  void answer(std::int64_t bytes, int num_round_trips) {
    Messages sent(bytes), received(bytes);
    transport::WorkPtr question = recv(0, received.next());
    for (int i = 0; i < num_round_trips; ++i) {
      const std::span<std::byte> message = sent.next_written();
      wait(question, 0);
      if (i + 1 < num_round_trips) question = recv(0, received.next());
      wait(channel(0).send(message), 0);
    }
  }

  transport::Endpoint& endpoint_;
  const transport::WatchOptions& watch_;
  const Meanwhile meanwhile_;
  BusyWork busy_;
  double processor_us_ = 0;
};

void require_one_host(const transport::Endpoint& endpoint, const BusyRanks& ranks) {
  if (ranks.num_ranks() != endpoint.world_size()) {
    throw Error(ErrorKind::kInvalidArgument,
                "links are measured by all " + std::to_string(endpoint.world_size()) +
                    " ranks of the world, got a group of " + std::to_string(ranks.num_ranks()));
  }
  const std::vector<std::string> names = ranks.gather(host_name());
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    if (names[rank] == names[0]) continue;
    throw Error(ErrorKind::kUnavailable,
                "rank " + std::to_string(rank) + " is on host '" + names[rank] + "', rank 0 on '" +
                    names[0] + "': links between hosts are not measured yet; profile on one host");
  }
}

}  // namespace

LinkCosts measure_links(transport::Endpoint& endpoint, const BusyRanks& ranks,
                        const LinkOptions& options) {
  require_one_host(endpoint, ranks);
  if (ranks.num_ranks() == 1) return {};
  LinkTimer alone(endpoint, ranks.watch(), Meanwhile::kSleep);
  LinkTimer beside(endpoint, ranks.watch(), Meanwhile::kCompute);
  std::vector<double> times;
  double processor_us = 0;
  for (const std::int64_t bytes : options.sizes) {
    const int num_round_trips = static_cast<int>(
        std::clamp<std::int64_t>(options.max_bytes / std::max<std::int64_t>(bytes, 1),
                                 options.min_round_trips, options.max_round_trips));
    for (LinkTimer* timer : {&alone, &beside}) {
      ranks.barrier();
      times.push_back(timer->one_way_us(bytes, num_round_trips));
    }
    if (bytes == kPricedBytes) processor_us = alone.processor_us();
  }
  times.push_back(processor_us);
  times = ranks.from_first(std::move(times));
  profile::LinkTable table{.kind = "host", .times = {}};
  for (std::size_t i = 0; i < options.sizes.size(); ++i) {
    table.times.push_back({options.sizes[i], times[2 * i], times[2 * i + 1]});
  }
  return {{table}, times.back() * 1000 / kPricedBytes};
}

}  // namespace trireme::measure
