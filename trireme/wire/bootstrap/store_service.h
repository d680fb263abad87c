#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trireme/wire/bootstrap/admission.h"
#include "trireme/wire/bootstrap/regroup.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/system/poller.h"
#include "trireme/wire/system/thread.h"

namespace trireme::transport {
namespace internal {

/// A get that cannot be answered yet.
struct WaitingGet {
  StoreMessage request;
  std::vector<std::string> keys;
  std::set<std::string> missing;
};

/// Which rank of which generation; the first one has no name.
struct Seat {
  std::string generation;
  int rank = 0;
};

/// A connection to the store.
struct StoreClientState {
  Descriptor socket;
  std::vector<std::byte> received;
  std::vector<std::byte> to_send;
  std::optional<int> process;  ///< Since its hello: its first rank, or kObserver.
  Seat seat;
  bool has_said_goodbye = false;
  bool is_untold =
      false;  ///< A rank has given the error that ends all; this one has not asked since.
  std::optional<WaitingGet> waiting;
  std::optional<StoreMessage> regrouping;  ///< A call that waits for others.
  Poller::Interest interest;
  std::optional<std::string> why_broken;  ///< Its connection is to be ended.

  bool is_rank() const { return process && *process != kObserver; }
};

}  // namespace internal

/// All but `post` is confined to the thread.
///
/// Serving one client writes to others: to those who wait for what it sets, and at a loss to all
/// who wait. So a connection that breaks is marked, and ended when nobody is being served.
class StoreServer::Service {
 public:
  Service(Descriptor listener, const Token& token, const Logger& logger);
  ~Service();
  const Address& address() const { return address_; }
  void mark_lost(int rank, const std::string& why);

 private:
  using Client = internal::StoreClientState;
  using Seat = internal::Seat;

  void serve();
  void serve_events(Deadline latest);
  void tell_the_untold();
  void add_client(Descriptor socket);
  void serve_client(std::uint64_t id, Client& client, const Poller::Event& event);
  static void attempt(Client& client, const std::function<void()>& step);
  bool read(Client& client);
  void write(Client& client);
  void update_interest(std::uint64_t id, Client& client);
  void end_broken();
  void handle(Client& client, const StoreMessage& message);
  void hello(Client& client, const StoreMessage& message);
  void check(Client& client, const StoreMessage& message);
  void set(const std::string& key, const std::string& value);
  void remove(Client& client, const StoreMessage& message);
  void set_many(Client& client, const StoreMessage& message);
  std::vector<std::string> absent(const std::vector<std::string>& keys) const;
  void get(Client& client, const StoreMessage& message, std::vector<std::string> keys);
  void add(Client& client, const StoreMessage& message);
  void lose(const Seat& seat, const std::string& why);
  void fail(const std::string& generation, const Error& error);
  void fail_by(const Client& rank, const Error& error);
  void answer_failure(Client& client, const StoreMessage& to);
  void answer_waiting(std::uint64_t id, Client& client);
  void answer_get(Client& client);
  void answer(Client& client, const StoreMessage& to, const Error& error);
  void answer(Client& client, const StoreMessage& to, const std::string& value);
  void send(Client& client, const StoreMessage& message);

  // New generations (store_regroup.cc).
  void regroup(Client& client, const StoreMessage& message);
  void settle();
  void settle(const internal::Gathering& gathering);
  void begin_generation(const std::string& name, const std::vector<int>& members);
  void fail_gathering(const std::string& name, const Error& error);
  void end_gathering(const std::string& name,
                     const std::function<void(Client&, const StoreMessage&)>& tell);

  Poller poller_;
  std::optional<Gate> gate_;
  const Address address_;
  bool is_stopping_ = false;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Client> clients_;
  std::map<std::string, std::string> values_;
  std::size_t num_bytes_ = 0;                              ///< Of keys and values.
  std::set<int> ended_well_;                               ///< Processes that said goodbye.
  std::map<int, Seat> seats_;                              ///< Of processes that have regrouped.
  std::map<std::string, Error> failures_;                  ///< By generation.
  std::map<std::string, internal::Gathering> gatherings_;  ///< By the generation to come.
  std::map<std::string, std::vector<int>> generations_;    ///< Members of those that began.
  std::optional<LibraryThread> thread_;
};

}  // namespace trireme::transport
