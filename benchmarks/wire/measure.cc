#include "benchmarks/wire/measure.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "benchmarks/wire/pattern.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t kAlignment = 4096;

double now_us() { return Microseconds(Clock::now().time_since_epoch()).count(); }

/// Of all threads of this process, in user and system mode.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void fill_with_zeros(std::span<std::byte> buffer) {
  if (!buffer.empty()) std::memset(buffer.data(), 0, buffer.size());
}

double time_us(const std::function<void()>& act) {
  const Clock::time_point begin = Clock::now();
  act();
  return Microseconds(Clock::now() - begin).count();
}

/// What the call adds to the sleep. Ranks sleep together only if they begin together.
double exposed_us(const Prepared& prepared, std::chrono::microseconds sleep, Contender& contender) {
  const double alone = time_us([&] { std::this_thread::sleep_for(sleep); });
  contender.barrier();
  return time_us([&] { prepared.run_beside_sleep(sleep); }) - alone;
}

/// Each word is read and written once.
void pass_over(std::span<std::byte> buffer) {
  const std::span<std::uint64_t> words(reinterpret_cast<std::uint64_t*>(buffer.data()),
                                       buffer.size() / sizeof(std::uint64_t));
  for (std::uint64_t& word : words) word ^= 1;
}

/// Of a pass, while the others have theirs.
double pass_us(const Buffers& buffers, Contender& contender) {
  contender.barrier();
  return time_us([&] {
    pass_over(buffers.send);
    pass_over(buffers.recv);
  });
}

/// act   returns how long it took.
void run_timed(const std::function<double()>& act, int iterations, Answer& answer) {
  answer.times_us.reserve(static_cast<std::size_t>(iterations));
  const double cpu_before = cpu_seconds();
  for (int i = 0; i < iterations; ++i) answer.times_us.push_back(act());
  answer.cpu_s = cpu_seconds() - cpu_before;
}

std::function<double()> timed(const Prepared& prepared, const Order& order, const Buffers& buffers,
                              Contender& contender) {
  if (order.is_pass) return [&] { return pass_us(buffers, contender); };
  if (order.sleep_us == 0) return [&] { return time_us(prepared.run); };
  return [&] { return exposed_us(prepared, std::chrono::microseconds(order.sleep_us), contender); };
}

/// One call over what the ranks give by `pattern`. Of a broadcast, only the root gives something.
void run_over(Pattern pattern, const Prepared& prepared, const Case& one, const Buffers& buffers,
              int rank) {
  fill_with_wrong(buffers.recv);
  if (one.operation == Collective::kBroadcast && rank != 0) {
    fill_with_wrong(buffers.send);
  } else {
    fill(buffers.send, one.dtype, pattern, rank);
  }
  prepared.run();
}

void run_late(const Prepared& prepared, int rank, Answer& answer) {
  std::this_thread::sleep_for(std::chrono::milliseconds(rank));
  answer.entered_us = now_us();
  prepared.run();
  answer.left_us = now_us();
}

}  // namespace

std::span<std::byte> Memory::Piece::at_least(std::size_t wanted) {
  if (wanted > bytes) {
    const std::size_t rounded = (wanted + kAlignment - 1) / kAlignment * kAlignment;
    memory = {nullptr, nullptr};
    bytes = 0;
    memory = {static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)), std::free};
    if (!memory) {
      throw Error(ErrorKind::kResourceExhausted,
                  "no memory for a buffer of " + std::to_string(wanted) + " bytes");
    }
    bytes = rounded;
  }
  return {memory.get(), wanted};
}

Buffers Memory::buffers(const Case& one, Contender& contender) {
  const auto all = static_cast<std::size_t>(one.bytes);
  const std::size_t part = all / static_cast<std::size_t>(contender.num_ranks());
  const bool is_gather = one.operation == Collective::kAllGather;
  const std::size_t send = is_gather ? part : all;
  std::size_t recv = 0;
  if (has_parts(one.operation)) recv = one.operation == Collective::kReduceScatter ? part : all;
  if (one.is_registered) {
    const auto memory = contender.registered(send + recv);
    if (memory) return {memory->first(send), memory->subspan(send, recv)};
  }
  return {send_.at_least(send), recv_.at_least(recv)};
}

Answer measure(Contender& contender, const Order& order, Memory& memory) {
  const Case& one = order.what;
  const Buffers buffers = memory.buffers(one, contender);
  const auto prepared = contender.prepare(one, buffers);
  Answer answer;
  if (!prepared) {
    answer.unavailable = "no " + std::string(collectives::to_text(one.operation)) + " of " +
                         std::string(to_text(one.dtype)) + " here";
    return answer;
  }
  if (order.sleep_us > 0 && !prepared->run_beside_sleep) {
    answer.unavailable = "nothing beside a sleep";
    return answer;
  }
  fill_with_zeros(buffers.send);
  fill_with_zeros(buffers.recv);
  for (int i = 0; i < order.warmups; ++i) prepared->run();
  contender.barrier();
  run_timed(timed(*prepared, order, buffers, contender), order.iterations, answer);
  if (one.operation == Collective::kBarrier) {
    run_late(*prepared, contender.rank(), answer);
    return answer;
  }
  const int rank = contender.rank();
  run_over(Pattern::kWhole, *prepared, one, buffers, rank);
  const Checker checker{.what = one, .rank = rank, .num_ranks = contender.num_ranks()};
  answer.wrong = checker.count_wrong(prepared->result, prepared->first);
  if (is_same_everywhere(one.operation)) {
    run_over(Pattern::kReal, *prepared, one, buffers, rank);
    answer.digest = sha256(prepared->result);
  }
  return answer;
}

}  // namespace trireme::bench
