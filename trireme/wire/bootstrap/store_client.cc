#include <array>
#include <charconv>

#include "trireme/error.h"
#include "trireme/wire/bootstrap/admission.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;

void check_size(std::string_view what, std::size_t size, std::size_t most) {
  if (size <= most) return;
  throw Error(ErrorKind::kInvalidArgument, "a " + std::string(what) + " of the store has at most " +
                                               std::to_string(most) + " bytes, got " +
                                               std::to_string(size));
}

Error error_of(const StoreMessage& answer) {
  return error_from_bytes(std::as_bytes(std::span(answer.value)));
}

}  // namespace

StoreClient::StoreClient(const Address& address, int rank, const ConnectPolicy& policy, Token token)
    : address_(address), rank_(rank), policy_(policy), token_(std::move(token)) {
  connect();
  request({.verb = StoreVerb::kHello, .number = rank}, usual_deadline());
}

void StoreClient::connect() {
  const Deadline deadline = usual_deadline();
  const std::string server = "the store at " + to_text(address_);
  const auto connect_once = [&] {
    ConnectPolicy rest = policy_;
    rest.deadline = std::chrono::milliseconds(poll_timeout(deadline));
    Descriptor socket = connect_to(address_, rest);
    set_options_of_connection(socket);
    return socket;
  };
  std::optional<Descriptor> socket =
      enter_with_retries(connect_once, token_, "store", server, wait_until(deadline, server));
  if (!socket) fail_store_lost();
  socket_ = std::move(*socket);
}

Deadline StoreClient::usual_deadline() const { return Clock::now() + policy_.deadline; }

/// Of errors.
ErrorContext StoreClient::place() const {
  return rank_ == kObserver ? ErrorContext{} : ErrorContext{.rank = rank_};
}

void StoreClient::set(std::string_view key, std::string_view value) {
  check_size("value", value.size(), kMaxStoreValue);
  request({.verb = StoreVerb::kSet, .key = std::string(key), .value = std::string(value)},
          usual_deadline());
}

std::string StoreClient::set_once(std::string_view key, std::string_view value) {
  check_size("value", value.size(), kMaxStoreValue);
  return request(
      {.verb = StoreVerb::kSetOnce, .key = std::string(key), .value = std::string(value)},
      usual_deadline());
}

bool StoreClient::remove(std::string_view key) {
  return request({.verb = StoreVerb::kRemove, .key = std::string(key)}, usual_deadline()) == "1";
}

void StoreClient::set_many(std::span<const std::pair<std::string, std::string>> entries) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : entries) {
    check_size("key", key.size(), kMaxStoreKey);
    texts.insert(texts.end(), {key, value});
  }
  request({.verb = StoreVerb::kSetMany, .value = pack(texts)}, usual_deadline());
}

std::vector<std::string> StoreClient::get_many(std::span<const std::string> keys,
                                               std::chrono::milliseconds deadline) {
  for (const std::string& key : keys) check_size("key", key.size(), kMaxStoreKey);
  const StoreMessage get{.verb = StoreVerb::kGetMany, .value = pack(keys)};
  const auto values = try_request(get, Clock::now() + deadline);
  if (values) return unpack(*values);
  const std::vector<std::string> absent = missing(keys);
  if (absent.empty()) return unpack(request(get, usual_deadline()));  // the last came just now
  Error late(ErrorKind::kTimeout, "nobody has set " + std::to_string(absent.size()) + " of " +
                                      std::to_string(keys.size()) + " keys, '" + absent.front() +
                                      "' the first, in the store at " + to_text(address_) +
                                      " within " + std::to_string(deadline.count()) + " ms");
  throw Error(late.add(place()));
}

std::vector<std::string> StoreClient::missing(std::span<const std::string> keys) {
  return unpack(request({.verb = StoreVerb::kMissing, .value = pack(keys)}, usual_deadline()));
}

void StoreClient::fail(const Error& error) {
  const std::vector<std::byte> bytes = error_to_bytes(error);
  request({.verb = StoreVerb::kFail,
           .value = {reinterpret_cast<const char*>(bytes.data()), bytes.size()}},
          usual_deadline());
}

Generation StoreClient::regroup(const std::string& generation, int world_size,
                                const RegroupOptions& options) {
  const std::string members =
      request({.verb = StoreVerb::kRegroup,
               .key = generation,
               .value = internal::to_bytes(internal::RegroupCall{world_size, options})},
              usual_deadline() + options.window);
  Generation begun;
  for (const std::string& rank : unpack(members)) {
    const int old_rank = std::stoi(rank);
    if (old_rank == rank_) begun.rank = static_cast<int>(begun.members.size());
    begun.members.push_back(old_rank);
  }
  rank_ = begun.rank;
  return begun;
}

std::string StoreClient::get(std::string_view key, std::chrono::milliseconds deadline) {
  const StoreMessage get{.verb = StoreVerb::kGet, .key = std::string(key)};
  if (auto value = try_request(get, Clock::now() + deadline)) return std::move(*value);
  Error late(ErrorKind::kTimeout, "nobody has set '" + std::string(key) + "' in the store at " +
                                      to_text(address_) + " within " +
                                      std::to_string(deadline.count()) + " ms");
  throw Error(late.add(place()));
}

std::int64_t StoreClient::add(std::string_view key, std::int64_t number) {
  const std::string sum = request(
      {.verb = StoreVerb::kAdd, .number = number, .key = std::string(key)}, usual_deadline());
  std::int64_t result = 0;
  std::from_chars(sum.data(), sum.data() + sum.size(), result);
  return result;
}

void StoreClient::check() { request({.verb = StoreVerb::kCheck}, usual_deadline()); }

void StoreClient::shutdown() {
  try {
    request({.verb = StoreVerb::kGoodbye}, usual_deadline());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kPeerLost) throw;
  }
  socket_.reset();
}

std::string StoreClient::request(StoreMessage message, Deadline deadline) {
  auto value = try_request(std::move(message), deadline);
  if (!value) fail_late();
  return std::move(*value);
}

/// Nothing where the answer has not come at the deadline.
std::optional<std::string> StoreClient::try_request(StoreMessage message, Deadline deadline) {
  check_size("key", message.key.size(), kMaxStoreKey);
  message.id = ++last_id_;
  send(message, deadline);
  std::optional<StoreMessage> answer = receive(deadline);
  while (answer && answer->id != message.id) answer = receive(deadline);  // of a get before
  if (!answer) return std::nullopt;
  if (answer->verb == StoreVerb::kValue) return std::move(answer->value);
  Error error = error_of(*answer);
  throw Error(error.add(place()));
}

void StoreClient::send(const StoreMessage& message, Deadline deadline) {
  const std::vector<std::byte> bytes = to_bytes(message);
  std::span<const std::byte> rest(bytes);
  while (!rest.empty()) {
    if (!socket_.is_open()) fail_store_lost();
    if (!wait_writable(socket_, deadline)) {
      socket_.reset();  // with half a message
      fail_late();
    }
    const auto count = write_some(socket_, rest);
    if (!count) fail_store_lost();
    rest = rest.subspan(*count);
  }
}

std::optional<StoreMessage> StoreClient::receive(Deadline deadline) {
  while (true) {
    if (auto message = take_store_message(received_)) return message;
    if (!wait_readable(socket_, deadline)) return std::nullopt;
    std::array<std::byte, 64 * 1024> buffer;
    const auto count = read_some(socket_, buffer);
    if (!count) fail_store_lost();
    received_.insert(received_.end(), buffer.begin(),
                     buffer.begin() + static_cast<std::ptrdiff_t>(*count));
  }
}

void StoreClient::fail_late() const {
  Error late(ErrorKind::kTimeout, "the store at " + to_text(address_) + " does not answer");
  throw Error(late.add(place()));
}

void StoreClient::fail_store_lost() {
  socket_.reset();
  Error lost(ErrorKind::kPeerLost,
             "the store at " + to_text(address_) +
                 " is lost: the process that serves it (rank 0 or the launcher) has ended");
  throw Error(lost.add(place()));
}

}  // namespace trireme::transport
