#include "benchmarks/wire/compare.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/wire/statistics.h"

namespace trireme::bench {
namespace {

std::int64_t ranks_that_left_early(std::span<const Answer> answers) {
  double last_entered = 0;
  for (const Answer& answer : answers) last_entered = std::max(last_entered, answer.entered_us);
  return std::ranges::count_if(answers,
                               [&](const Answer& answer) { return answer.left_us < last_entered; });
}

/// A round beside sleeps, after the contestant's times are known. Not of what is so short that
/// sleeps are not exact enough.
void measure_overlap(Result& result, const Case& one, Contestant& contestant,
                     const CompareOptions& options) {
  constexpr int kMaxIterations = 10;
  constexpr double kMinUs = 1000;
  if (!result.unavailable.empty() || result.p50_us() < kMinUs) return;
  const Order order{.what = one,
                    .iterations = std::min(iterations_for(one.bytes), kMaxIterations),
                    .warmups = 1,
                    .sleep_us = std::llround(2 * result.p50_us())};
  Result beside;
  add_answers(beside, one.operation, contestant.run(order, options.deadline));
  result.wrong += beside.wrong;
  result.differing_ranks += beside.differing_ranks;
  if (!beside.unavailable.empty()) return;
  result.exposed_us.insert(result.exposed_us.end(), beside.times_us.begin(), beside.times_us.end());
}

/// About what an all_reduce in place must take: all bytes of all ranks are read and written.
void measure_pass(Result& result, const Case& one, Contestant& contestant,
                  const CompareOptions& options) {
  constexpr std::int64_t kMinBytes = 4096;  // below, the clock is what is timed
  if (!result.unavailable.empty() || one.bytes < kMinBytes) return;
  const Order order{
      .what = one, .iterations = iterations_for(one.bytes), .warmups = 1, .is_pass = true};
  Result pass;
  add_answers(pass, one.operation, contestant.run(order, options.deadline));
  result.wrong += pass.wrong;
  result.differing_ranks += pass.differing_ranks;
  result.pass_us.insert(result.pass_us.end(), pass.times_us.begin(), pass.times_us.end());
}

}  // namespace

double Result::p50_us() const { return quantile(times_us, 0.5); }
double Result::p95_us() const { return quantile(times_us, 0.95); }

void add_answers(Result& result, Collective operation, std::span<const Answer> answers) {
  std::vector<std::vector<double>> times;
  for (const Answer& answer : answers) {
    if (!answer.unavailable.empty()) result.unavailable = answer.unavailable;
    times.push_back(answer.times_us);
    result.cpu_s += answer.cpu_s;
    result.wrong += answer.wrong;
    result.differing_ranks += answer.digest == answers[0].digest ? 0 : 1;
  }
  if (!result.unavailable.empty()) return;
  if (operation == Collective::kBarrier) result.wrong += ranks_that_left_early(answers);
  const std::vector<double> slowest = largest(times);
  result.times_us.insert(result.times_us.end(), slowest.begin(), slowest.end());
}

std::vector<Result> compare(const Case& one, const Contestants& contestants,
                            const CompareOptions& options) {
  constexpr int kWarmupShare = 10;
  const int iterations = iterations_for(one.bytes);
  const Order order{
      .what = one, .iterations = iterations, .warmups = std::max(iterations / kWarmupShare, 2)};
  std::vector<Result> results(contestants.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      const std::size_t turn = (i + static_cast<std::size_t>(round)) % contestants.size();
      if (!results[turn].unavailable.empty()) continue;
      add_answers(results[turn], one.operation, contestants[turn]->run(order, options.deadline));
    }
    if (options.is_bounded) measure_pass(results[0], one, *contestants[0], options);
  }
  for (int round = 0; options.is_overlapped && round < options.rounds; ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      measure_overlap(results[i], one, *contestants[i], options);
    }
  }
  return results;
}

}  // namespace trireme::bench
