#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/wire/transport/error_form.h"
#include "trireme/wire/transport/failure.h"
#include "trireme/wire/transport/poller.h"
#include "trireme/wire/transport/store.h"
#include "trireme/wire/transport/thread.h"

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kListenerId = 0;

struct Client {
  Descriptor socket;
  std::vector<std::byte> received;
  std::vector<std::byte> to_send;
  std::optional<int> rank;  ///< Since its hello.
  bool has_said_goodbye = false;
  std::optional<StoreMessage> waiting_get;
  Poller::Interest interest;
  std::optional<std::string> why_broken;  ///< Its connection is to be ended.
};

[[noreturn]] void refuse_bytes(const std::string& problem) {
  throw Error(ErrorKind::kCorruptData, problem);
}

}  // namespace

/// All but `post` is confined to the thread.
///
/// Serving one client writes to others: to those who wait for what it sets, and at a loss to all
/// who wait. So a connection that breaks is marked, and ended when nobody is being served.
class StoreServer::Service {
 public:
  explicit Service(const Address& address)
      : listener_(listen_on(address)), address_(local_address(listener_)) {
    poller_.add(listener_, kListenerId);
    thread_.emplace("store", [this] { serve(); });
  }

  ~Service() {
    poller_.post([this] { is_stopping_ = true; });
    thread_->join();
  }

  const Address& address() const { return address_; }

  void mark_lost(int rank, const std::string& why) {
    poller_.post([this, rank, why] {
      if (!ended_well_.contains(rank)) lose(rank, why);
    });
  }

 private:
  void serve() {
    try {
      while (!is_stopping_) serve_events();
    } catch (const std::exception&) {  // of waiting itself: to the ranks, the store is lost
      clients_.clear();
      listener_.reset();
    }
  }

  void serve_events() {
    const std::chrono::milliseconds pause(is_full_ ? 100 : 3'600'000);
    const std::vector<Poller::Event> events = poller_.wait(Clock::now() + pause);
    end_broken();  // those of posted functions
    for (const Poller::Event& event : events) {
      const auto client = clients_.find(event.id);
      if (event.id == kListenerId) {
        accept_clients();
      } else if (client != clients_.end() && !client->second.why_broken) {
        serve_client(event.id, client->second, event);
      }
      end_broken();
    }
    if (std::exchange(is_full_, false)) poller_.change(listener_, kListenerId, {});
  }

  void accept_clients() {
    try {
      while (std::optional<Descriptor> socket = accept_from(listener_)) {
        set_options_of_connection(*socket);
        const std::uint64_t id = ++last_id_;
        poller_.add(*socket, id);
        clients_[id].socket = std::move(*socket);
      }
    } catch (const std::exception&) {  // out of descriptors: those who wait get in later
      poller_.change(listener_, kListenerId, {.in_reading = false});
      is_full_ = true;
    }
  }

  void serve_client(std::uint64_t id, Client& client, const Poller::Event& event) {
    attempt(client, [&] {
      if (event.is_writable) write(client);
      if (event.is_readable && !read(client)) {
        client.why_broken = "its connection closed";
        return;
      }
      while (client.to_send.empty()) {  // answers are taken before more is asked
        const auto message = take_store_message(client.received);
        if (!message) break;
        handle(client, *message);
      }
      update_interest(id, client);
    });
  }

  /// Whatever goes wrong with a client breaks its connection and nothing else.
  static void attempt(Client& client, const std::function<void()>& step) {
    try {
      step();
    } catch (const std::exception& error) {
      if (client.why_broken) return;
      client.why_broken = std::string("its connection to the store failed: ") + error.what();
    }
  }

  bool read(Client& client) {
    std::array<std::byte, 64 * 1024> buffer;
    const auto count = read_some(client.socket, buffer);
    if (!count) return false;
    client.received.insert(client.received.end(), buffer.begin(),
                           buffer.begin() + static_cast<std::ptrdiff_t>(*count));
    return true;
  }

  void write(Client& client) {
    const auto count = write_some(client.socket, client.to_send);
    // At the connection's end there is nobody to write to; reading will tell.
    const std::size_t done = count.value_or(client.to_send.size());
    client.to_send.erase(client.to_send.begin(),
                         client.to_send.begin() + static_cast<std::ptrdiff_t>(done));
  }

  void update_interest(std::uint64_t id, Client& client) {
    const bool is_idle = client.to_send.empty();
    const Poller::Interest interest{.in_reading = is_idle, .in_writing = !is_idle};
    if (interest == client.interest) return;
    poller_.change(client.socket, id, interest);
    client.interest = interest;
  }

  /// Ends the connections that are broken, and those that break when the others learn of it.
  void end_broken() {
    const auto is_broken = [](const auto& entry) { return entry.second.why_broken.has_value(); };
    auto found = std::find_if(clients_.begin(), clients_.end(), is_broken);
    while (found != clients_.end()) {
      auto node = clients_.extract(found);
      Client& client = node.mapped();
      if (client.rank && !client.has_said_goodbye) lose(*client.rank, *client.why_broken);
      attempt(client, [&] { poller_.remove(client.socket); });
      found = std::find_if(clients_.begin(), clients_.end(), is_broken);
    }
  }

  void handle(Client& client, const StoreMessage& message) {
    if (client.rank.has_value() == (message.verb == StoreVerb::kHello)) {
      refuse_bytes("a client says hello first, and once");
    }
    client.waiting_get.reset();  // it has given up
    switch (message.verb) {
      case StoreVerb::kHello:
        return hello(client, message);
      case StoreVerb::kSet:
        set(message.key, message.value);
        return answer(client, message, "");
      case StoreVerb::kGet:
        client.waiting_get = message;
        return answer_get(client);
      case StoreVerb::kAdd:
        return add(client, message);
      case StoreVerb::kCheck:
        return lost_ ? answer(client, message, *lost_) : answer(client, message, "");
      case StoreVerb::kGoodbye:
        client.has_said_goodbye = true;
        ended_well_.insert(*client.rank);
        return answer(client, message, "");
      case StoreVerb::kValue:
      case StoreVerb::kError:
        refuse_bytes("a client does not answer");
    }
  }

  void hello(Client& client, const StoreMessage& message) {
    if (message.number < 0 || message.number > std::numeric_limits<int>::max()) {
      refuse_bytes("there is no rank " + std::to_string(message.number));
    }
    client.rank = static_cast<int>(message.number);
    answer(client, message, "");
  }

  void set(const std::string& key, const std::string& value) {
    values_[key] = value;
    for (auto& [id, client] : clients_) {
      if (client.waiting_get && client.waiting_get->key == key) answer_waiting(id, client);
    }
  }

  void add(Client& client, const StoreMessage& message) {
    const std::string& text = values_[message.key];
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && (code != std::errc() || end != text.data() + text.size())) {
      return answer(client, message,
                    Error(ErrorKind::kInvalidArgument, "'" + message.key +
                                                           "' is not a number in the store; use "
                                                           "another key"));
    }
    // Unsigned: an overflow wraps around.
    const auto sum =
        static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(message.number);
    set(message.key, std::to_string(static_cast<std::int64_t>(sum)));
    answer(client, message, values_[message.key]);
  }

  void lose(int rank, const std::string& why) {
    if (lost_) return;
    lost_ = lost_rank(rank, why);
    for (auto& [id, client] : clients_) {
      if (client.waiting_get) answer_waiting(id, client);
    }
  }

  void answer_waiting(std::uint64_t id, Client& client) {
    attempt(client, [&] {
      answer_get(client);
      update_interest(id, client);
    });
  }

  /// Answers a client's get if that can be done now.
  void answer_get(Client& client) {
    const auto found = values_.find(client.waiting_get->key);
    if (!lost_ && found == values_.end()) return;
    const StoreMessage get = *std::exchange(client.waiting_get, std::nullopt);
    lost_ ? answer(client, get, *lost_) : answer(client, get, found->second);
  }

  void answer(Client& client, const StoreMessage& to, const Error& error) {
    const std::vector<std::byte> bytes = error_to_bytes(error);
    send(client, {.verb = StoreVerb::kError,
                  .id = to.id,
                  .value = {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
  }

  void answer(Client& client, const StoreMessage& to, const std::string& value) {
    send(client, {.verb = StoreVerb::kValue, .id = to.id, .value = value});
  }

  void send(Client& client, const StoreMessage& message) {
    client.to_send = to_bytes(message);  // the one before was taken, see serve_client
    write(client);
  }

  Descriptor listener_;
  const Address address_;
  Poller poller_;
  bool is_stopping_ = false;
  bool is_full_ = false;
  std::uint64_t last_id_ = kListenerId;
  std::map<std::uint64_t, Client> clients_;
  std::map<std::string, std::string> values_;
  std::set<int> ended_well_;  ///< Ranks that said goodbye.
  std::optional<Error> lost_;
  std::optional<LibraryThread> thread_;
};

StoreServer::StoreServer(const Address& address) : service_(std::make_unique<Service>(address)) {}

StoreServer::~StoreServer() = default;

const Address& StoreServer::address() const { return service_->address(); }

void StoreServer::mark_lost(int rank, const std::string& why) { service_->mark_lost(rank, why); }

}  // namespace trireme::transport
