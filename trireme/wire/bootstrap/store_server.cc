#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/bootstrap/failure.h"
#include "trireme/wire/bootstrap/store_service.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;

/// How long an ending store waits for ranks to ask why all ends.
constexpr std::chrono::seconds kPatience(1);

[[noreturn]] void refuse_bytes(const std::string& problem) {
  throw Error(ErrorKind::kCorruptData, problem);
}

/// Not one that strangers reach who can guess the token.
Descriptor checked(Descriptor listener, const Token& token) {
  check_may_listen(token, local_address(listener).host);
  return listener;
}

}  // namespace

StoreServer::Service::Service(Descriptor listener, const Token& token, const Logger& logger)
    : gate_(std::in_place, std::move(listener), poller_,
            GateOptions{.token = token, .door = "store", .logger = logger}),
      address_(local_address(gate_->listener())) {
  thread_.emplace("store", [this] { serve(); });
}

StoreServer::Service::~Service() {
  poller_.post([this] { is_stopping_ = true; });
  thread_->join();
}

void StoreServer::Service::mark_lost(int rank, const std::string& why) {
  poller_.post([this, rank, why] {
    if (ended_well_.contains(rank)) return;
    lose(seats_.contains(rank) ? seats_.at(rank) : Seat{.rank = rank}, why);
  });
}

void StoreServer::Service::serve() {
  try {
    while (!is_stopping_) serve_events(Deadline::max());
    tell_the_untold();
  } catch (const std::exception&) {  // of waiting itself: to the ranks, the store is lost
    clients_.clear();
    gate_.reset();
  }
}

/// Ranks that learn nothing but that the store is gone would name its end as the cause.
void StoreServer::Service::tell_the_untold() {
  const auto is_untold = [](const auto& entry) { return entry.second.is_untold; };
  const Deadline patience = Clock::now() + kPatience;
  while (Clock::now() < patience && std::ranges::any_of(clients_, is_untold)) {
    serve_events(patience);
  }
}

/// Waits until something happens, or `latest`.
void StoreServer::Service::serve_events(Deadline latest) {
  Deadline next = std::min(gate_->next_deadline(), latest);
  for (const auto& [key, gathering] : gatherings_) next = std::min(next, gathering.deadline);
  const std::vector<Poller::Event> events = poller_.wait(next);
  end_broken();  // those of posted functions
  for (const Poller::Event& event : events) {
    const auto client = clients_.find(event.id);
    if (Gate::is_id(event.id)) {
      if (std::optional<Descriptor> socket = gate_->serve(event)) add_client(std::move(*socket));
    } else if (client != clients_.end() && !client->second.why_broken) {
      serve_client(event.id, client->second, event);
    }
    end_broken();
  }
  settle();
  gate_->expire();
}

void StoreServer::Service::add_client(Descriptor socket) {
  const std::uint64_t id = ++last_id_;
  try {
    set_options_of_connection(socket);
    poller_.add(socket, id);
  } catch (const Error&) {  // broken already, or no room: it may come again
    return;
  }
  clients_[id].socket = std::move(socket);
}

void StoreServer::Service::serve_client(std::uint64_t id, Client& client,
                                        const Poller::Event& event) {
  attempt(client, [&] {
    if (event.is_writable) write(client);
    if (event.is_readable && !read(client)) {
      client.why_broken = "its connection closed";
      return;
    }
    while (client.to_send.empty()) {  // answers are taken before more is asked
      const auto message = take_store_message(client.received);
      if (!message) break;
      try {
        handle(client, *message);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kResourceExhausted) throw;
        answer(client, *message, error);
      }
    }
    update_interest(id, client);
  });
}

/// Whatever goes wrong with a client breaks its connection and nothing else.
void StoreServer::Service::attempt(Client& client, const std::function<void()>& step) {
  try {
    step();
  } catch (const std::exception& error) {
    if (client.why_broken) return;
    client.why_broken = std::string("its connection to the store failed: ") + error.what();
  }
}

bool StoreServer::Service::read(Client& client) {
  std::array<std::byte, 64 * 1024> buffer;
  const auto count = read_some(client.socket, buffer);
  if (!count) return false;
  client.received.insert(client.received.end(), buffer.begin(),
                         buffer.begin() + static_cast<std::ptrdiff_t>(*count));
  return true;
}

void StoreServer::Service::write(Client& client) {
  const auto count = write_some(client.socket, client.to_send);
  // At the connection's end there is nobody to write to; reading will tell.
  const std::size_t done = count.value_or(client.to_send.size());
  client.to_send.erase(client.to_send.begin(),
                       client.to_send.begin() + static_cast<std::ptrdiff_t>(done));
}

void StoreServer::Service::update_interest(std::uint64_t id, Client& client) {
  const bool is_idle = client.to_send.empty();
  const Poller::Interest interest{.in_reading = is_idle, .in_writing = !is_idle};
  if (interest == client.interest) return;
  poller_.change(client.socket, id, interest);
  client.interest = interest;
}

/// Ends the connections that are broken, and those that break when the others learn of it.
void StoreServer::Service::end_broken() {
  const auto is_broken = [](const auto& entry) { return entry.second.why_broken.has_value(); };
  auto found = std::find_if(clients_.begin(), clients_.end(), is_broken);
  while (found != clients_.end()) {
    auto node = clients_.extract(found);
    Client& client = node.mapped();
    if (client.is_rank() && !client.has_said_goodbye) lose(client.seat, *client.why_broken);
    attempt(client, [&] { poller_.remove(client.socket); });
    found = std::find_if(clients_.begin(), clients_.end(), is_broken);
  }
}

void StoreServer::Service::handle(Client& client, const StoreMessage& message) {
  if (client.process.has_value() == (message.verb == StoreVerb::kHello)) {
    refuse_bytes("a client says hello first, and once");
  }
  client.waiting.reset();  // it has given up
  client.regrouping.reset();
  switch (message.verb) {
    case StoreVerb::kHello:
      return hello(client, message);
    case StoreVerb::kSet:
      set(message.key, message.value);
      return answer(client, message, "");
    case StoreVerb::kSetOnce:
      if (!values_.contains(message.key)) set(message.key, message.value);
      return answer(client, message, values_[message.key]);
    case StoreVerb::kSetMany:
      return set_many(client, message);
    case StoreVerb::kGet:
      return get(client, message, {message.key});
    case StoreVerb::kGetMany:
      return get(client, message, unpack(message.value));
    case StoreVerb::kMissing:
      return answer(client, message, pack(absent(unpack(message.value))));
    case StoreVerb::kFail:
      fail_by(client, error_from_bytes(std::as_bytes(std::span(message.value))));
      return answer(client, message, "");
    case StoreVerb::kRegroup:
      return regroup(client, message);
    case StoreVerb::kAdd:
      return add(client, message);
    case StoreVerb::kRemove:
      return remove(client, message);
    case StoreVerb::kCheck:
      return check(client, message);
    case StoreVerb::kGoodbye:
      client.has_said_goodbye = true;
      ended_well_.insert(*client.process);
      return answer(client, message, "");
    case StoreVerb::kValue:
    case StoreVerb::kError:
      refuse_bytes("a client does not answer");
  }
}

void StoreServer::Service::hello(Client& client, const StoreMessage& message) {
  if (message.number < kObserver || message.number > std::numeric_limits<int>::max()) {
    refuse_bytes("there is no rank " + std::to_string(message.number));
  }
  client.process = static_cast<int>(message.number);
  client.seat.rank = *client.process;
  answer(client, message, "");
}

void StoreServer::Service::check(Client& client, const StoreMessage& message) {
  if (failures_.contains(client.seat.generation)) return answer_failure(client, message);
  answer(client, message, "");
}

/// Whoever sets too much is turned away; what is there stays.
void StoreServer::Service::set(const std::string& key, const std::string& value) {
  const auto found = values_.find(key);
  const std::size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
  const std::size_t after = num_bytes_ - before + key.size() + value.size();
  if (after > kMaxStoreBytes) {
    throw Error(ErrorKind::kResourceExhausted,
                "the store holds at most " + std::to_string(kMaxStoreBytes) +
                    " bytes of keys and values; remove some, or set less");
  }
  values_[key] = value;
  num_bytes_ = after;
  for (auto& [id, client] : clients_) {
    if (client.waiting && client.waiting->missing.erase(key) > 0) answer_waiting(id, client);
  }
}

void StoreServer::Service::remove(Client& client, const StoreMessage& message) {
  const auto found = values_.find(message.key);
  const bool is_there = found != values_.end();
  if (is_there) {
    num_bytes_ -= message.key.size() + found->second.size();
    values_.erase(found);
    for (auto& [id, other] : clients_) {
      if (!other.waiting) continue;
      const std::vector<std::string>& keys = other.waiting->keys;
      if (std::ranges::find(keys, message.key) != keys.end()) {
        other.waiting->missing.insert(message.key);
      }
    }
  }
  answer(client, message, is_there ? "1" : "0");
}

void StoreServer::Service::set_many(Client& client, const StoreMessage& message) {
  const std::vector<std::string> texts = unpack(message.value);
  if (texts.size() % 2 != 0) refuse_bytes("a key without a value");
  for (std::size_t i = 0; i < texts.size(); i += 2) set(texts[i], texts[i + 1]);
  answer(client, message, "");
}

/// Those that are not set, in the order of `keys`.
std::vector<std::string> StoreServer::Service::absent(const std::vector<std::string>& keys) const {
  std::vector<std::string> result;
  for (const std::string& key : keys) {
    if (!values_.contains(key)) result.push_back(key);
  }
  return result;
}

void StoreServer::Service::get(Client& client, const StoreMessage& message,
                               std::vector<std::string> keys) {
  const std::vector<std::string> missing = absent(keys);
  client.waiting = {
      {.verb = message.verb, .id = message.id}, std::move(keys), {missing.begin(), missing.end()}};
  answer_get(client);
}

void StoreServer::Service::add(Client& client, const StoreMessage& message) {
  const auto found = values_.find(message.key);
  const std::string text = found == values_.end() ? "" : found->second;
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && (code != std::errc() || end != text.data() + text.size())) {
    return answer(client, message,
                  Error(ErrorKind::kInvalidArgument, "'" + message.key +
                                                         "' is not a number in the store; use "
                                                         "another key"));
  }
  // Unsigned: an overflow wraps around.
  const auto sum = static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(message.number);
  set(message.key, std::to_string(static_cast<std::int64_t>(sum)));
  answer(client, message, values_[message.key]);
}

void StoreServer::Service::lose(const Seat& seat, const std::string& why) {
  fail(seat.generation, lost_rank(seat.rank, why));
}

/// The first error of a generation stays.
void StoreServer::Service::fail(const std::string& generation, const Error& error) {
  if (!failures_.try_emplace(generation, error).second) return;
  for (auto& [id, client] : clients_) {
    if (client.waiting && client.seat.generation == generation) answer_waiting(id, client);
  }
}

/// As a rank says, which then ends: others have still to ask.
void StoreServer::Service::fail_by(const Client& rank, const Error& error) {
  const std::string& generation = rank.seat.generation;
  if (failures_.contains(generation)) return;
  for (auto& [id, other] : clients_) {
    const bool is_ours = other.is_rank() && other.seat.generation == generation;
    other.is_untold = is_ours && &other != &rank && !other.has_said_goodbye;
  }
  fail(generation, error);
}

void StoreServer::Service::answer_failure(Client& client, const StoreMessage& to) {
  client.is_untold = false;
  answer(client, to, failures_.at(client.seat.generation));
}

void StoreServer::Service::answer_waiting(std::uint64_t id, Client& client) {
  attempt(client, [&] {
    answer_get(client);
    update_interest(id, client);
  });
}

/// Answers a client's get if that can be done now.
void StoreServer::Service::answer_get(Client& client) {
  const bool has_failed = failures_.contains(client.seat.generation);
  if (!has_failed && !client.waiting->missing.empty()) return;
  const internal::WaitingGet get = *std::exchange(client.waiting, std::nullopt);
  if (has_failed) return answer_failure(client, get.request);
  if (get.request.verb == StoreVerb::kGet) {
    return answer(client, get.request, values_.at(get.keys.front()));
  }
  std::vector<std::string> values;
  for (const std::string& key : get.keys) values.push_back(values_.at(key));
  try {
    answer(client, get.request, pack(values));
  } catch (const Error& too_large) {
    answer(client, get.request, too_large);
  }
}

void StoreServer::Service::answer(Client& client, const StoreMessage& to, const Error& error) {
  const std::vector<std::byte> bytes = error_to_bytes(error);
  send(client, {.verb = StoreVerb::kError,
                .id = to.id,
                .value = {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
}

void StoreServer::Service::answer(Client& client, const StoreMessage& to,
                                  const std::string& value) {
  send(client, {.verb = StoreVerb::kValue, .id = to.id, .value = value});
}

void StoreServer::Service::send(Client& client, const StoreMessage& message) {
  client.to_send = to_bytes(message);  // the one before was taken, see serve_client
  write(client);
}

StoreServer::StoreServer(const Address& address, const Token& token, const Logger& logger)
    : StoreServer(token, listen_on(address), logger) {}

StoreServer::StoreServer(const Token& token, Descriptor listener, const Logger& logger)
    : service_(std::make_unique<Service>(checked(std::move(listener), token), token, logger)) {}

StoreServer::~StoreServer() = default;

const Address& StoreServer::address() const { return service_->address(); }

void StoreServer::mark_lost(int rank, const std::string& why) { service_->mark_lost(rank, why); }

}  // namespace trireme::transport
