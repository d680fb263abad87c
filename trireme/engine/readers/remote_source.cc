#include "trireme/engine/readers/remote_source.h"

#include <chrono>
#include <cstring>
#include <numeric>

#include "trireme/data/read_parts.h"
#include "trireme/error.h"

namespace trireme::readers {
namespace {

/// An answer's sizes and samples. What they cost is counted as read by whoever comes for the first of them.
std::span<const std::byte> counted(const SampleAnswer& answer, std::span<const std::byte> bytes) {
  SampleCost cost;
  if (bytes.size() < sizeof cost) return {};
  std::memcpy(&cost, bytes.data(), sizeof cost);
  if (!answer.is_counted.exchange(true)) {
    const auto count = static_cast<std::int64_t>(answer.num_samples());
    data::count_part("read", {.count = count, .bytes = cost.num_bytes});
    data::count_part("decode", {.time = std::chrono::nanoseconds(cost.decode_ns), .count = count});
  }
  return bytes.subspan(sizeof cost);
}

/// Calls of `will_read` whose samples are kept until they are read: whoever starts anew elsewhere never reads them.
constexpr std::size_t kKeptCalls = 4;

}  // namespace

RemoteSource::RemoteSource(std::shared_ptr<const data::Source> source, std::int64_t index,
                           std::shared_ptr<ReaderLink> link)
    : source_(std::move(source)), index_(index), link_(std::move(link)) {}

std::string RemoteSource::reading() const {
  const std::string there = source_->reading();
  return "by " + std::to_string(link_->num_readers()) + " reader ranks" +
         (there.empty() ? "" : "; there: " + there);
}

void RemoteSource::will_read(std::span<const data::Sample> samples) const {
  for (const data::Sample& sample : samples) require_index(sample);
  compare_once();
  const std::scoped_lock lock(mutex_);
  const std::int64_t call = num_calls_++;
  std::map<int, std::vector<data::Sample>> by_reader;
  std::vector<Key> keys;
  for (const data::Sample& sample : samples) {
    const Key key{sample.index, sample.visit};
    if (!asked_.try_emplace(key, Asked{.call = call}).second) continue;
    by_reader[link_->reader_of(sample.index)].push_back(sample);
    keys.push_back(key);
  }
  calls_.push_back(std::move(keys));
  for (const auto& [reader, of_it] : by_reader) {
    const Answer answer = link_->ask(reader, index_, of_it);
    for (std::size_t i = 0; i < of_it.size(); ++i)
      asked_[{of_it[i].index, of_it[i].visit}] = {answer, i, call};
  }
  forget_old();
}

void RemoteSource::compare_once() const {
  std::call_once(compared_, [this] { link_->compare(index_, text_of(*source_)); });
}

void RemoteSource::require_index(data::Sample sample) const {
  if (sample.index >= 0 && sample.index < num_samples()) return;
  throw Error(ErrorKind::kInvalidArgument, "there is no sample " + std::to_string(sample.index) +
                                               "; there are " + std::to_string(num_samples()));
}

/// A sample may have been asked for anew since.
void RemoteSource::forget_old() const {
  for (; calls_.size() > kKeptCalls; calls_.pop_front()) {
    const std::int64_t call = num_calls_ - std::ssize(calls_);
    for (const Key& key : calls_.front()) {
      const auto found = asked_.find(key);
      if (found != asked_.end() && found->second.call == call) asked_.erase(found);
    }
  }
}

RemoteSource::Asked RemoteSource::take(data::Sample sample) const {
  const std::scoped_lock lock(mutex_);
  const auto found = asked_.find({sample.index, sample.visit});
  if (found == asked_.end()) return {};
  Asked asked = std::move(found->second);
  asked_.erase(found);
  return asked;
}

RemoteSource::Asked RemoteSource::ask_for(data::Sample sample) const {
  return {.answer = link_->ask(link_->reader_of(sample.index), index_, {&sample, 1})};
}

std::span<const std::byte> RemoteSource::bytes_of(const Asked& asked, data::Sample sample) const {
  const std::span<const std::byte> bytes = counted(*asked.answer, link_->await(*asked.answer));
  const std::size_t num_samples = asked.answer->num_samples();
  std::vector<std::int64_t> sizes(num_samples);
  const std::size_t head = num_samples * sizeof(std::int64_t);
  if (bytes.size() >= head) std::memcpy(sizes.data(), bytes.data(), head);
  const std::int64_t own = sizes[asked.place], expected = num_bytes(*source_, sample);
  if (own != expected) {
    throw Error(ErrorKind::kInvalidArgument,
                "reader rank " + std::to_string(asked.answer->reader) + " has other data: sample " +
                    std::to_string(sample.index) + " of " + std::to_string(own) +
                    " bytes, which here has " + std::to_string(expected) +
                    "; give all ranks the same files, in the same order");
  }
  const auto before = std::accumulate(sizes.begin(), sizes.begin() + asked.place, std::int64_t{0});
  return bytes.subspan(head + before, own);
}

void RemoteSource::read(data::Sample sample,
                        std::span<const std::span<std::byte>> destinations) const {
  require_index(sample);
  compare_once();
  Asked asked = take(sample);
  std::span<const std::byte> bytes;
  try {
    if (asked.answer) bytes = bytes_of(asked, sample);
  } catch (const Error&) {
    if (link_->has_failed()) throw;
    asked.answer = nullptr;  // Another sample's error, as like as not.
  }
  if (!asked.answer) {
    asked = ask_for(sample);
    bytes = bytes_of(asked, sample);
  }
  std::int64_t num_wanted = 0;
  for (const std::span<std::byte> destination : destinations) num_wanted += std::ssize(destination);
  if (num_wanted != std::ssize(bytes) || destinations.size() != fields().size()) {
    throw Error(ErrorKind::kInvalidArgument, "destinations are not those of a sample's fields");
  }
  for (const std::span<std::byte> destination : destinations) {
    if (!destination.empty()) std::memcpy(destination.data(), bytes.data(), destination.size());
    bytes = bytes.subspan(destination.size());
  }
}

}  // namespace trireme::readers
