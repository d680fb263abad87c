#include "trireme/engine/measure/link_measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <span>
#include <string>
#include <utility>

#include "trireme/engine/measure/measurement.h"
#include "trireme/error.h"
#include "trireme/wire/collectives/channel.h"

namespace trireme::measure {
namespace {

constexpr std::size_t kColdBytes = std::size_t{32} << 20;  // more than a core's caches
constexpr std::int64_t kLongMessage = std::int64_t{1} << 20;

constexpr transport::Tag kMessages = 0x6c696e6b;  // nothing else is under way meanwhile

/// Compute in slices of some microseconds, of which waits that must not leave the core idle are made. Together they walk
/// through as much memory as a core's own cache holds, as operators do: what a message pushes out of it is fetched again.
class BusyWork {
 public:
  void slice() {
    constexpr float kDecay = 0.999F;
    for (std::size_t i = next_; i < next_ + kSlice; ++i) sums_[i] = kDecay * sums_[i] + terms_[i];
    next_ = (next_ + kSlice) % kNumFloats;
  }

 private:
  static constexpr std::size_t kSlice = 8 << 10;
  static constexpr std::size_t kNumFloats = 64 << 10;
  std::vector<float> sums_ = std::vector<float>(kNumFloats, 1.0F);
  std::vector<float> terms_ = std::vector<float>(kNumFloats, 0.5F);
  std::size_t next_ = 0;
};

/// Memory for one message after another, each where none was for long: as in a step. One for all
/// sizes, since the system takes longer to provide it than messages to pass.
class Messages {
 public:
  std::span<std::byte> next(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    if (memory_.size() < size) memory_.resize(std::max(size, kColdBytes));
    if (begin_ + size > memory_.size()) begin_ = 0;
    const std::span<std::byte> message = std::span(memory_).subspan(begin_, size);
    begin_ += (size + 63) / 64 * 64;
    return message;
  }

  /// One whose bytes this core has just written.
  std::span<std::byte> next_written(std::int64_t bytes) {
    const std::span<std::byte> message = next(bytes);
    std::ranges::fill(message, std::byte{1});
    return message;
  }

 private:
  std::vector<std::byte> memory_;
  std::size_t begin_ = 0;
};

/// Of one rank.
struct BothWays {
  Messages sent;
  Messages received;
};

/// Of this process, all threads of it, or of this thread.
Microseconds processor_time(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// Nanoseconds of the slices of all ranks that are threads of this process, had no message disturbed them.
std::atomic<std::int64_t>& computed_ns() {
  static std::atomic<std::int64_t> ns = 0;
  return ns;
}

enum class Meanwhile { kSleep, kCompute };

/// Two ranks that measure a kind of link.
struct Pair {
  profile::LinkKind kind;
  int asks;
  int answers;
};

class LinkTimer {
 public:
  /// watch   of each message; outlives the timer, as `messages` do.
  LinkTimer(transport::Endpoint& endpoint, const transport::WatchOptions& watch, const Pair& pair,
            Meanwhile meanwhile, BothWays& messages)
      : endpoint_(endpoint),
        watch_(watch),
        pair_(pair),
        meanwhile_(meanwhile),
        messages_(messages) {}

  /// Median one-way time; 0 on ranks that do not know it.
  double one_way_us(std::int64_t bytes, int num_round_trips) {
    constexpr int kWarmups = 2;
    const int rank = endpoint_.rank();
    if (meanwhile_ == Meanwhile::kCompute) slice_ns_ = measure_slice_ns();
    if (rank == pair_.answers) {
      answer(bytes, num_round_trips + kWarmups);
      return 0;
    }
    if (rank != pair_.asks) {
      std::byte end;
      if (meanwhile_ == Meanwhile::kCompute) wait(recv(pair_.asks, {&end, 1}), pair_.asks);
      return 0;
    }
    std::vector<double> times = ask(bytes, num_round_trips + kWarmups);
    if (meanwhile_ == Meanwhile::kCompute) end_others();
    times.erase(times.begin(), times.begin() + kWarmups);
    return median(std::move(times)) / 2;
  }

  /// Processor time of the rank that asks for a question and its answer, without what it computed meanwhile: that of
  /// both ranks for one message.
  double processor_us() const { return processor_us_; }

 private:
  collectives::PeerChannel channel(int peer) { return {endpoint_, peer, kMessages}; }

  transport::WorkPtr recv(int peer, std::span<std::byte> memory) {
    return channel(peer).recv([memory](std::size_t) { return memory; });
  }

  void wait(const transport::WorkPtr& work, int peer) {
    transport::Awaited message = transport::message_work(*work, endpoint_, peer);
    if (meanwhile_ == Meanwhile::kCompute) message.meanwhile = [this] { compute(); };
    transport::await(message, watch_,
                     {.rank = endpoint_.rank(), .operation = "message of the profile"});
  }

  void compute() {
    busy_.slice();
    computed_ns() += slice_ns_;
  }

  /// While the other ranks compute too.
  std::int64_t measure_slice_ns() {
    constexpr int kSlices = 400;
    for (int i = 0; i < kSlices; ++i) busy_.slice();
    const Microseconds before = processor_time(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < kSlices; ++i) busy_.slice();
    const Microseconds all = processor_time(CLOCK_THREAD_CPUTIME_ID) - before;
    return static_cast<std::int64_t>(1000 * all.count() / kSlices);
  }

  /// Processor time of this process but for undisturbed slices: what messages took.
  static Microseconds message_time() {
    const std::chrono::nanoseconds computed(computed_ns());
    return processor_time(CLOCK_PROCESS_CPUTIME_ID) - computed;
  }

  void end_others() {
    for (int other = 0; other < endpoint_.world_size(); ++other) {
      if (other == pair_.asks || other == pair_.answers) continue;
      const std::byte end{};
      wait(channel(other).send({&end, 1}), other);
    }
  }

  std::vector<double> ask(std::int64_t bytes, int num_round_trips) {
    const int peer = pair_.answers;
    std::vector<double> times, processor;
    for (int i = 0; i < num_round_trips; ++i) {
      const transport::WorkPtr answer = recv(peer, messages_.received.next(bytes));
      const std::span<std::byte> message = messages_.sent.next_written(bytes);
      const Microseconds before = message_time();
      const Clock::time_point start = Clock::now();
      const transport::WorkPtr question = channel(peer).send(message);
      wait(answer, peer);
      times.push_back(Microseconds(Clock::now() - start).count());
      wait(question, peer);
      processor.push_back((message_time() - before).count());
    }
    processor_us_ = median(std::move(processor));
    return times;
  }

  void answer(std::int64_t bytes, int num_round_trips) {
    const int peer = pair_.asks;
    const auto next_question = [&] { return recv(peer, messages_.received.next(bytes)); };
    transport::WorkPtr question = next_question();
    for (int i = 0; i < num_round_trips; ++i) {
      const std::span<std::byte> message = messages_.sent.next_written(bytes);
      wait(question, peer);
      if (i + 1 < num_round_trips) question = next_question();
      wait(channel(peer).send(message), peer);
    }
  }

  transport::Endpoint& endpoint_;
  const transport::WatchOptions& watch_;
  const Pair pair_;
  const Meanwhile meanwhile_;
  BothWays& messages_;
  BusyWork busy_;
  double processor_us_ = 0;
  std::int64_t slice_ns_ = 0;
};

void require_all(const transport::Endpoint& endpoint, const BusyRanks& ranks) {
  if (ranks.num_ranks() == endpoint.world_size()) return;
  throw Error(ErrorKind::kInvalidArgument,
              "links are measured by all " + std::to_string(endpoint.world_size()) +
                  " ranks of the world, got a group of " + std::to_string(ranks.num_ranks()));
}

/// hosts   by rank.
std::vector<Pair> pairs_of(const std::vector<std::string>& hosts) {
  std::vector<Pair> pairs;
  const auto add_first = [&](profile::LinkKind kind, bool is_same) {
    for (std::size_t a = 0; a < hosts.size(); ++a) {
      for (std::size_t b = a + 1; b < hosts.size(); ++b) {
        if ((hosts[a] == hosts[b]) != is_same) continue;
        return pairs.push_back({kind, static_cast<int>(a), static_cast<int>(b)});
      }
    }
  };
  add_first(profile::LinkKind::kHost, true);
  add_first(profile::LinkKind::kNetwork, false);
  return pairs;
}

bool says_all(const profile::LinkTime& time, const LinkOptions& options) {
  return time.bytes >= kLongMessage && time.alone_us > Microseconds(options.long_time).count();
}

/// What one pair measures, the same on all ranks.
struct PairTimes {
  profile::LinkTable table;
  std::vector<profile::MessageWork> work;
};

PairTimes measure_pair(transport::Endpoint& endpoint, const BusyRanks& ranks, const Pair& pair,
                       const LinkOptions& options) {
  BothWays messages;
  LinkTimer alone(endpoint, ranks.watch(), pair, Meanwhile::kSleep, messages);
  LinkTimer beside(endpoint, ranks.watch(), pair, Meanwhile::kCompute, messages);
  PairTimes result{.table = {.kind = pair.kind, .times = {}}};
  std::optional<profile::LinkTime> last;
  for (const std::int64_t bytes : options.sizes) {
    const int num_round_trips = round_trips_of(bytes, last, options);
    std::vector<double> times;
    for (LinkTimer* timer : {&alone, &beside}) {
      ranks.barrier();
      times.push_back(timer->one_way_us(bytes, num_round_trips));
    }
    times.push_back(beside.processor_us());
    times = ranks.from(pair.asks, std::move(times));
    last = {bytes, times[0], times[1]};
    result.table.times.push_back(*last);
    result.work.push_back({bytes, std::max(times[2], 0.0)});
    if (says_all(*last, options)) break;
  }
  return result;
}

}  // namespace

int round_trips_of(std::int64_t bytes, const std::optional<profile::LinkTime>& last,
                   const LinkOptions& options) {
  std::int64_t num_trips = options.max_bytes / std::max<std::int64_t>(bytes, 1);
  if (last && last->alone_us > 0 && last->bytes > 0) {
    const double longer = static_cast<double>(bytes) / static_cast<double>(last->bytes);
    const double trip_us = 2 * last->alone_us * longer;
    const auto in_time =
        static_cast<std::int64_t>(Microseconds(options.max_time).count() / trip_us);
    num_trips = std::min(num_trips, in_time);
  }
  return static_cast<int>(
      std::clamp<std::int64_t>(num_trips, options.min_round_trips, options.max_round_trips));
}

MeasuredLinks measure_links(transport::Endpoint& endpoint, const BusyRanks& ranks,
                            const LinkOptions& options) {
  require_all(endpoint, ranks);
  MeasuredLinks costs;
  for (const Pair& pair : pairs_of(ranks.gather(options.host))) {
    PairTimes times = measure_pair(endpoint, ranks, pair, options);
    if (costs.tables.empty()) costs.work = std::move(times.work);
    costs.tables.push_back(std::move(times.table));
  }
  return costs;
}

}  // namespace trireme::measure
