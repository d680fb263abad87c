#include "trireme/engine/readers/sample_server.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "trireme/data/parallel_read.h"
#include "trireme/data/read_parts.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::readers {
namespace {

void wait_for_end(transport::Work& work) {
  while (!work.wait_for(std::chrono::minutes(1))) continue;
}

void put_word(std::vector<std::byte>& answer, std::int64_t word) {
  std::memcpy(answer.data(), &word, sizeof word);
}

std::vector<std::byte> error_answer(const Error& error) {
  const std::vector<std::byte> text = transport::error_to_bytes(transport::flattened(error));
  std::vector<std::byte> answer(sizeof(std::int64_t) + text.size());
  put_word(answer, kError);
  std::memcpy(answer.data() + sizeof(std::int64_t), text.data(), text.size());
  return answer;
}

SampleCost cost_of(const data::ReadParts::ByName& parts) {
  SampleCost cost;
  for (const auto& [name, part] : parts) {
    cost.num_bytes += part.bytes;
    if (name == "decode") cost.decode_ns = part.time.count();
  }
  return cost;
}

std::vector<data::Sample> samples_of(const std::vector<std::int64_t>& request) {
  std::vector<data::Sample> samples;
  for (std::size_t i = 1; i + 1 < request.size(); i += 2)
    samples.push_back({request[i], request[i + 1]});
  return samples;
}

}  // namespace

/// Messages from and to one rank that trains.
class SampleServer::Client {
 public:
  Client(transport::Endpoint& endpoint, int rank, const SampleTags& tags)
      : endpoint_(endpoint), rank_(rank), tags_(tags) {}

  std::vector<std::int64_t> next_request() {
    std::vector<std::int64_t> words;
    const auto place = [&words](std::size_t bytes) -> std::optional<std::span<std::byte>> {
      words.resize(bytes / sizeof(std::int64_t));
      return std::as_writable_bytes(std::span(words));
    };
    wait_for_end(*endpoint_.recv(rank_, tags_.request, place));
    return words;
  }

  /// The one before has gone once this returns.
  void send(std::vector<std::byte> answer) {
    finish();
    answer_ = std::move(answer);
    sent_ = endpoint_.send(rank_, tags_.answer, answer_);
  }

  void finish() {
    if (sent_) wait_for_end(*sent_);
  }

 private:
  transport::Endpoint& endpoint_;
  int rank_;
  SampleTags tags_;
  std::vector<std::byte> answer_;  ///< Lent until it has gone.
  transport::WorkPtr sent_;
};

SampleServer::SampleServer(std::vector<std::shared_ptr<const data::Source>> sources,
                           transport::Endpoint& endpoint, int num_readers, int num_threads,
                           ErrorOf error_of)
    : sources_(std::move(sources)),
      endpoint_(endpoint),
      tags_(next_tags(endpoint)),
      spread_(kernels::on_threads(num_threads)),
      error_of_(std::move(error_of)) {
  for (const auto& source : sources_) texts_.push_back(source ? text_of(*source) : "");
  for (int rank = 0; rank < endpoint.world_size() - num_readers; ++rank) {
    threads_.push_back(std::make_unique<transport::LibraryThread>("samples " + std::to_string(rank),
                                                                  [this, rank] { serve(rank); }));
  }
}

SampleServer::~SampleServer() = default;

void SampleServer::wait() {
  for (const auto& thread : threads_) thread->join();
  if (failure_) std::rethrow_exception(failure_);
}

void SampleServer::serve(int rank) noexcept {
  Client client(endpoint_, rank, tags_);  // Outlives its works, which a failure ends.
  try {
    while (true) {
      const std::vector<std::int64_t> request = client.next_request();
      const bool is_end = !request.empty() && request[0] == kEnd;
      client.send(answer(request));
      if (!is_end) continue;
      client.finish();
      return;
    }
  } catch (const std::exception& failure) {
    endpoint_.poison(error_of_(failure).add({.rank = endpoint_.rank()}));
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

std::vector<std::byte> SampleServer::answer(const std::vector<std::int64_t>& request) const {
  try {
    return read(request);
  } catch (const std::exception& failure) {
    return error_answer(error_of_(failure));
  }
}

const data::Source& SampleServer::source(std::int64_t number) const {
  if (number >= 0 && std::cmp_less(number, sources_.size()) && sources_[number])
    return *sources_[number];
  throw Error(ErrorKind::kInvalidArgument,
              "there is no source " + std::to_string(number) + "; give all ranks the same data");
}

void SampleServer::compare(const std::vector<std::int64_t>& request) const {
  static_cast<void>(source(request.at(1)));
  const std::string asked = compared_text(request), &mine = texts_[request[1]];
  if (asked == mine) return;
  throw Error(ErrorKind::kInvalidArgument,
              "a reader has other data than a rank that trains: '" + mine + "' and not '" + asked +
                  "'; start all ranks with the same command line and files");
}

std::vector<std::byte> SampleServer::read(const std::vector<std::int64_t>& request) const {
  std::vector<std::byte> result(sizeof(std::int64_t));
  put_word(result, kWhole);
  if (request.at(0) == kEnd) return result;
  if (request[0] == kCompare) {
    compare(request);
    return result;
  }
  const std::vector<data::Sample> samples = samples_of(request);
  const data::Source& source = this->source(request[0]);
  source.will_read(samples);
  std::vector<std::int64_t> sizes, begins;
  for (const data::Sample& sample : samples) sizes.push_back(num_bytes(source, sample));
  const auto bytes = std::as_bytes(std::span(sizes));
  result.resize(result.size() + sizeof(SampleCost));
  result.insert(result.end(), bytes.begin(), bytes.end());
  std::int64_t total = std::ssize(result);
  for (const std::int64_t size : sizes) begins.push_back(std::exchange(total, total + size));
  result.resize(total);
  data::ReadParts parts;
  const auto read_one = [&](std::int64_t i) {
    const data::CountedReading counted(&parts);
    const data::Lengths lengths = source.lengths_of(samples[i]);
    std::span<std::byte> rest = std::span(result).subspan(begins[i]);
    std::vector<std::span<std::byte>> places;
    for (const data::Field& field : source.fields()) {
      places.push_back(rest.first(field.num_bytes(lengths)));
      rest = rest.subspan(places.back().size());
    }
    source.read(samples[i], places);
  };
  data::read_each(std::ssize(samples), read_one, spread_);
  const SampleCost cost = cost_of(parts.take());
  std::memcpy(result.data() + sizeof kWhole, &cost, sizeof cost);
  return result;
}

}  // namespace trireme::readers
