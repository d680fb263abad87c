#include "trireme/engine/readers/reader_link.h"

#include <cstring>
#include <exception>
#include <optional>
#include <string>

#include "trireme/error.h"

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
  return endpoint_.world_size() - num_readers_ + reader;
}

std::shared_ptr<const SampleAnswer> ReaderLink::ask(int reader, std::int64_t source,
                                                    std::span<const data::Sample> samples) {
  auto answer = std::make_shared<SampleAnswer>();
  answer->reader = reader;
  answer->words = request_words(source, samples);
  const auto place = [to = answer.get()](std::size_t bytes) -> std::optional<std::span<std::byte>> {
    to->memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    to->num_bytes = bytes;
    return std::span(to->memory.get(), bytes);
  };
  const std::scoped_lock lock(mutex_);
  if (has_ended_) {
    throw Error(ErrorKind::kInvalidArgument,
                "samples are asked for after the session that has the reader ranks has ended");
  }
  has_ended_ = source == kEnd && reader == endpoint_.world_size() - 1;
  std::erase_if(under_way_,
                [](const auto& one) { return one->sent->is_done() && one->came->is_done(); });
  under_way_.push_back(answer);
  answer->came = endpoint_.recv(reader, tags_.answer, place);
  answer->sent = endpoint_.send(reader, tags_.request, std::as_bytes(std::span(answer->words)));
  return answer;
}

std::span<const std::byte> ReaderLink::await(const SampleAnswer& answer) const {
  for (const transport::WorkPtr& work : {answer.sent, answer.came}) {
    transport::await(transport::message_work(*work, endpoint_, answer.reader), watch_,
                     {.rank = endpoint_.rank(), .operation = "read samples"});
  }
  const std::int64_t word = first_word(answer.bytes(), answer.reader);
  const std::span<const std::byte> rest = answer.bytes().subspan(sizeof word);
  if (word == kWhole) return rest;
  throw Error(static_cast<ErrorKind>(word),
              std::string(reinterpret_cast<const char*>(rest.data()), rest.size()))
      .add({.rank = answer.reader});
}

void ReaderLink::end() noexcept {
  for (int i = 0; i < num_readers_; ++i) {
    try {
      const int reader = endpoint_.world_size() - num_readers_ + i;
      await(*ask(reader, kEnd, {}));
    } catch (const std::exception&) {
      // The world has failed, and says so elsewhere.
    }
  }
}

}  // namespace trireme::readers
