#include "trireme/engine/readers/remote_source.h"

#include <cstring>

#include "trireme/error.h"

namespace trireme::readers {
namespace {

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
  const std::scoped_lock lock(mutex_);
  std::map<int, std::vector<data::Sample>> by_reader;
  std::vector<Key> keys;
  for (const data::Sample& sample : samples) {
    // The place is kept before it is known where the answer is, so that a sample that is named twice is asked for once.
    if (!asked_.try_emplace({sample.index, sample.visit}).second) continue;
    by_reader[link_->reader_of(sample.index)].push_back(sample);
    keys.emplace_back(sample.index, sample.visit);
  }
  calls_.push_back(std::move(keys));
  for (const auto& [reader, of_it] : by_reader) ask(reader, of_it);
  forget_old();
}

void RemoteSource::require_index(data::Sample sample) const {
  if (sample.index >= 0 && sample.index < num_samples()) return;
  throw Error(ErrorKind::kInvalidArgument, "there is no sample " + std::to_string(sample.index) +
                                               "; there are " + std::to_string(num_samples()));
}

void RemoteSource::ask(int reader, const std::vector<data::Sample>& samples) const {
  Asked asked{.answer = link_->ask(reader, index_, samples)};
  std::vector<std::int64_t> begins;
  for (const data::Sample& sample : samples) {
    begins.push_back(asked.answer_bytes);
    asked.answer_bytes += num_bytes(*source_, sample);
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    asked.begin_bytes = begins[i];
    asked_[{samples[i].index, samples[i].visit}] = asked;
  }
}

void RemoteSource::forget_old() const {
  for (; calls_.size() > kKeptCalls; calls_.pop_front()) {
    for (const Key& key : calls_.front()) asked_.erase(key);
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
  return {.answer = link_->ask(link_->reader_of(sample.index), index_, {&sample, 1}),
          .answer_bytes = num_bytes(*source_, sample)};
}

/// From the sample's first byte on.
std::span<const std::byte> RemoteSource::bytes_of(const Asked& asked) const {
  const std::span<const std::byte> bytes = link_->await(*asked.answer);
  if (std::cmp_not_equal(bytes.size(), asked.answer_bytes)) {
    throw Error(ErrorKind::kInvalidArgument,
                "reader rank " + std::to_string(asked.answer->reader) +
                    " has other data: samples of " + std::to_string(bytes.size()) +
                    " bytes, which here have " + std::to_string(asked.answer_bytes) +
                    "; give all ranks the same files");
  }
  return bytes.subspan(asked.begin_bytes);
}

void RemoteSource::read(data::Sample sample,
                        std::span<const std::span<std::byte>> destinations) const {
  require_index(sample);
  Asked asked = take(sample);
  std::span<const std::byte> bytes;
  try {
    if (asked.answer) bytes = bytes_of(asked);
  } catch (const Error&) {
    asked.answer = nullptr;  // Another sample's error, as like as not.
  }
  if (!asked.answer) {
    asked = ask_for(sample);
    bytes = bytes_of(asked);
  }
  std::int64_t num_wanted = 0;
  for (const std::span<std::byte> destination : destinations) num_wanted += std::ssize(destination);
  if (num_wanted > std::ssize(bytes) || destinations.size() != fields().size()) {
    throw Error(ErrorKind::kInvalidArgument, "destinations are not those of a sample's fields");
  }
  for (const std::span<std::byte> destination : destinations) {
    if (!destination.empty()) std::memcpy(destination.data(), bytes.data(), destination.size());
    bytes = bytes.subspan(destination.size());
  }
}

}  // namespace trireme::readers
