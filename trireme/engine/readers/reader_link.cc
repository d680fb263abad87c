#include "trireme/engine/readers/reader_link.h"

#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::readers {
namespace {

constexpr std::int64_t kNeighbours = 16;

std::int64_t first_word(std::span<const std::byte> bytes, int reader) {
  std::int64_t word = 0;
  if (bytes.size() < sizeof word) {
    throw Error(ErrorKind::kCorruptData, "an answer of reader rank " + std::to_string(reader) +
                                             " has " + std::to_string(bytes.size()) + " bytes");
  }
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

}  // namespace

ReaderLink::ReaderLink(transport::Endpoint& endpoint, int num_readers,
                       const transport::WatchOptions& watch)
    : endpoint_(endpoint), num_readers_(num_readers), watch_(watch), tags_(next_tags(endpoint)) {}

int ReaderLink::reader_of(std::int64_t index) const {
  const auto reader = static_cast<int>(index / kNeighbours % num_readers_);
  return first_reader() + reader;
}

std::shared_ptr<const SampleAnswer> ReaderLink::ask(int reader, std::int64_t source,
                                                    std::span<const data::Sample> samples) {
  const std::scoped_lock lock(mutex_);
  require_live();
  return begin(reader, request_words(source, samples));
}

void ReaderLink::require_live() const {
  if (!has_ended_) return;
  throw Error(ErrorKind::kInvalidArgument,
              "samples are asked for after the session that has the reader ranks has ended");
}

void ReaderLink::compare(std::int64_t source, const std::string& text) {
  std::vector<std::shared_ptr<const SampleAnswer>> answers;
  {
    const std::scoped_lock lock(mutex_);
    require_live();
    for (int i = 0; i < num_readers_; ++i)
      answers.push_back(begin(first_reader() + i, compare_words(source, text)));
  }
  for (const auto& answer : answers) await(*answer);
}

std::shared_ptr<const SampleAnswer> ReaderLink::begin(int reader, std::vector<std::int64_t> words) {
  std::erase_if(under_way_, [](const auto& one) {
    return one->came && one->came->is_done() && (!one->sent || one->sent->is_done());
  });
  auto answer = std::make_shared<SampleAnswer>();
  answer->reader = reader;
  answer->words = std::move(words);
  const auto place = [to = answer.get()](std::size_t bytes) -> std::optional<std::span<std::byte>> {
    to->memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    to->num_bytes = bytes;
    return std::span(to->memory.get(), bytes);
  };
  under_way_.push_back(answer);
  answer->came = endpoint_.recv(reader, tags_.answer, place);
  answer->sent = endpoint_.send(reader, tags_.request, std::as_bytes(std::span(answer->words)));
  return answer;
}

void ReaderLink::wait(const SampleAnswer& answer) const {
  for (const transport::WorkPtr& work : {answer.sent, answer.came}) {
    transport::await(transport::message_work(*work, endpoint_, answer.reader), watch_,
                     {.rank = endpoint_.rank(), .operation = "read samples"});
  }
}

std::span<const std::byte> ReaderLink::await(const SampleAnswer& answer) const {
  wait(answer);
  const std::int64_t word = first_word(answer.bytes(), answer.reader);
  const std::span<const std::byte> rest = answer.bytes().subspan(sizeof word);
  if (word == kWhole) return rest;
  Error error = transport::error_from_bytes(rest);
  error.add({.rank = answer.reader});
  throw error;
}

void ReaderLink::end() noexcept {
  try {
    std::list<std::shared_ptr<const SampleAnswer>> last;
    {
      const std::scoped_lock lock(mutex_);
      if (has_ended_) return;
      has_ended_ = true;
      for (int i = 0; i < num_readers_; ++i) begin(first_reader() + i, {kEnd});
      last = under_way_;
    }
    for (const auto& answer : last) wait(*answer);
  } catch (const std::exception&) {
    return;  // The world has failed, and says so elsewhere; its works have ended.
  }
}

}  // namespace trireme::readers
