#include "trireme/engine/readers/sample_server.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/data/parallel_read.h"
#include "trireme/error.h"

namespace trireme::readers {
namespace {

void wait_for_end(transport::Work& work) {
  while (!work.wait_for(std::chrono::minutes(1))) continue;
}

void put_word(std::vector<std::byte>& answer, std::int64_t word) {
  std::memcpy(answer.data(), &word, sizeof word);
}

std::vector<std::byte> error_answer(ErrorKind kind, std::string_view text) {
  std::vector<std::byte> answer(sizeof(std::int64_t) + text.size());
  put_word(answer, static_cast<std::int64_t>(kind));
  std::memcpy(answer.data() + sizeof(std::int64_t), text.data(), text.size());
  return answer;
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
                           transport::Endpoint& endpoint, int num_readers, int num_threads)
    : sources_(std::move(sources)),
      endpoint_(endpoint),
      tags_(next_tags(endpoint)),
      spread_(kernels::on_threads(num_threads)) {
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
  try {
    Client client(endpoint_, rank, tags_);
    while (true) {
      const std::vector<std::int64_t> request = client.next_request();
      const bool is_end = !request.empty() && request[0] == kEnd;
      client.send(answer(request));
      if (!is_end) continue;
      client.finish();
      return;
    }
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

std::vector<std::byte> SampleServer::answer(const std::vector<std::int64_t>& request) const {
  try {
    return read(request);
  } catch (const Error& error) {
    return error_answer(error.kind(), error.message());
  } catch (const std::exception& error) {
    return error_answer(ErrorKind::kModelFailure, error.what());
  }
}

std::vector<std::byte> SampleServer::read(const std::vector<std::int64_t>& request) const {
  const std::vector<data::Sample> samples = samples_of(request);
  std::vector<std::byte> result(sizeof(std::int64_t));
  put_word(result, kWhole);
  if (samples.empty()) return result;
  if (request[0] < 0 || std::cmp_greater_equal(request[0], sources_.size()) ||
      !sources_[request[0]]) {
    throw Error(ErrorKind::kInvalidArgument, "there is no source " + std::to_string(request[0]) +
                                                 "; give all ranks the same data");
  }
  const data::Source& source = *sources_[request[0]];
  source.will_read(samples);
  std::vector<std::int64_t> begins;
  std::int64_t total = std::ssize(result);
  for (const data::Sample& sample : samples) {
    begins.push_back(total);
    total += num_bytes(source, sample);
  }
  result.resize(total);
  const auto read_one = [&](std::int64_t i) {
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
  return result;
}

}  // namespace trireme::readers
