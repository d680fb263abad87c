#include "trireme/engine/measure/measurement.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "trireme/engine/memory/process_threads.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::measure {

namespace {

/// Between the two nearest where `part` falls between them. sorted: not empty.
double quantile(const std::vector<double>& sorted, double part) {
  const double position = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

bool Repeats::is_wanted() const {
  const auto num_repeats = static_cast<int>(times_us_.size());
  if (num_repeats < options_.min_repeats) return true;
  if (num_repeats >= options_.max_repeats || Clock::now() - start_ >= options_.max_time) {
    return false;
  }
  return median(times_us_) * num_repeats < Microseconds(options_.min_time).count();
}

void Repeats::add(Microseconds measured) {
  if (num_warmups_ < options_.num_warmups) {
    ++num_warmups_;
  } else {
    times_us_.push_back(measured.count());
  }
}

double median(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  return quantile(numbers, 0.5);
}

Timing summary(std::vector<double> times_us) {
  if (times_us.empty()) return {};
  std::sort(times_us.begin(), times_us.end());
  const double middle = quantile(times_us, 0.5);
  const double range = quantile(times_us, 0.75) - quantile(times_us, 0.25);
  return {middle, times_us.front(), middle > 0 ? range / middle : 0};
}

Microseconds time_once(const std::function<void()>& work) {
  const Microseconds start = memory::compute_time();
  work();
  return memory::compute_time() - start;
}

Timing time_repeats(const RepeatOptions& options, const std::function<void()>& prepare,
                    const std::function<void()>& work) {
  Repeats repeats(options);
  while (repeats.is_wanted()) {
    prepare();
    repeats.add(time_once(work));
  }
  return summary(repeats.times_us());
}

namespace {

template <typename T>
std::span<std::byte> bytes_of(std::vector<T>& items) {
  return std::as_writable_bytes(std::span(items));
}

}  // namespace

void BusyRanks::wait(const transport::WorkPtr& work, const char* operation) const {
  transport::await(collectives::group_work(*work, *group_), watch_,
                   {.rank = group_->endpoint().rank(), .operation = operation});
}

void BusyRanks::barrier() const {
  if (group_ != nullptr) wait(group_->barrier(), "barrier of the profile");
}

std::vector<double> BusyRanks::medians(const std::vector<double>& mine) const {
  if (num_ranks() == 1 || mine.empty()) return mine;
  std::vector<double> all(mine.size() * static_cast<std::size_t>(num_ranks()));
  wait(group_->all_gather(std::as_bytes(std::span(mine)), bytes_of(all)), "times of the profile");
  std::vector<double> result;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::vector<double> numbers;
    for (std::size_t k = i; k < all.size(); k += mine.size()) numbers.push_back(all[k]);
    result.push_back(median(std::move(numbers)));
  }
  return result;
}

std::vector<double> BusyRanks::from(int rank, std::vector<double> mine) const {
  if (num_ranks() > 1) wait(group_->broadcast(bytes_of(mine), rank), "times of a rank");
  return mine;
}

std::vector<std::string> BusyRanks::gather(const std::string& mine) const {
  if (num_ranks() == 1) return {mine};
  const auto num = static_cast<std::size_t>(num_ranks());
  const std::vector<std::uint64_t> size = {mine.size()};
  std::vector<std::uint64_t> sizes(num);
  wait(group_->all_gather(std::as_bytes(std::span(size)), bytes_of(sizes)), "sizes of texts");
  const std::size_t room = *std::max_element(sizes.begin(), sizes.end());
  std::vector<char> padded(mine.begin(), mine.end()), all(room * num);
  padded.resize(room);
  wait(group_->all_gather(std::as_bytes(std::span(padded)), bytes_of(all)), "texts");
  std::vector<std::string> result;
  for (std::size_t r = 0; r < num; ++r) {
    result.emplace_back(all.data() + r * room, static_cast<std::size_t>(sizes[r]));
  }
  return result;
}

WriteGuard::WriteGuard(const record::Recording& recording) {
  const graph::Graph& graph = recording.graph;
  for (const graph::Buffer& buffer : graph.buffers) tensors_.keep(recording.tensors[buffer.value]);
  for (const int p : graph::written_parameters(graph)) {
    tensors_.keep(recording.tensors[graph.parameters[p].value]);
  }
}

}  // namespace trireme::measure
