#include "trireme/wire/bench/compare.h"

#include <algorithm>

#include "trireme/wire/bench/statistics.h"

namespace trireme::bench {
namespace {

std::int64_t ranks_that_left_early(std::span<const Answer> answers) {
  double last_entered = 0;
  for (const Answer& answer : answers) last_entered = std::max(last_entered, answer.entered_us);
  return std::ranges::count_if(answers,
                               [&](const Answer& answer) { return answer.left_us < last_entered; });
}

}  // namespace

double Result::p50_us() const { return quantile(times_us, 0.5); }
double Result::p95_us() const { return quantile(times_us, 0.95); }

void add_answers(Result& result, Operation operation, std::span<const Answer> answers) {
  std::vector<std::vector<double>> times;
  for (const Answer& answer : answers) {
    if (!answer.unavailable.empty()) result.unavailable = answer.unavailable;
    times.push_back(answer.times_us);
    result.cpu_s += answer.cpu_s;
    result.wrong += answer.wrong;
    result.differing_ranks += answer.digest == answers[0].digest ? 0 : 1;
  }
  if (!result.unavailable.empty()) return;
  if (operation == Operation::kBarrier) result.wrong += ranks_that_left_early(answers);
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
  }
  return results;
}

}  // namespace trireme::bench
