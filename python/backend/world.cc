#include "python/backend/world.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "trireme/base/environment.h"
#include "trireme/error.h"
#include "trireme/wire/bootstrap/meeting.h"
#include "trireme/wire/collectives/measure.h"
#include "trireme/wire/endpoint/elastic_world.h"

namespace trireme::backend {
namespace {

constexpr const char* kMeetingKey = "trireme/store";

/// Where the ranks of a world find each other; rank 0 serves it until all have.
struct Meeting {
  transport::Address address;
  std::string secret;
  std::unique_ptr<transport::StoreServer> server;
};

/// `<secret> <address>`, as rank 0 says it.
Meeting meet(Rendezvous& rendezvous, int rank, std::chrono::milliseconds deadline) {
  if (rank != 0) {
    const std::string said = rendezvous.get(kMeetingKey, deadline);
    const std::size_t space = said.find(' ');
    return {transport::parse_address(said.substr(space + 1)), said.substr(0, space), nullptr};
  }
  Meeting meeting{{rendezvous.own_host(deadline), 0}, transport::make_secret(), nullptr};
  meeting.server =
      std::make_unique<transport::StoreServer>(meeting.address, transport::Token(meeting.secret));
  meeting.address = meeting.server->address();
  rendezvous.set(kMeetingKey, meeting.secret + " " + to_text(meeting.address));
  return meeting;
}

}  // namespace

World::World(Rendezvous& rendezvous, int rank, int size, std::chrono::milliseconds deadline)
    : rank_(rank), size_(size), owner_(::getpid()) {
  const RankEnvironment environment = read_connections();
  const Meeting meeting = meet(rendezvous, rank, deadline);
  transport::StoreClient store(meeting.address, rank, {.deadline = deadline},
                               transport::Token(meeting.secret));
  endpoint_ = transport::connect_world({.store = store,
                                        .rank = rank,
                                        .world_size = size,
                                        .deadline = deadline,
                                        .host = transport::host_of(environment),
                                        .shares_memory = environment.shares_memory},
                                       environment.ofi_provider);
  costs_ = collectives::measure_world_costs(*endpoint_, deadline);
  // Nobody needs the store any more once all are connected, and it ends with this.
  const std::string done = std::string(kMeetingKey) + "/connected/";
  rendezvous.set(done + std::to_string(rank), "1");
  for (int other = 0; rank == 0 && other < size; ++other) {
    rendezvous.get(done + std::to_string(other), deadline);
  }
  store.shutdown();
}

World::~World() {
  if (!is_own()) static_cast<void>(endpoint_.release());
}

transport::Endpoint& World::endpoint() const {
  const std::lock_guard lock(mutex_);
  if (endpoint_) return *endpoint_;
  throw Error(ErrorKind::kUnavailable,
              "the connections of this job have ended with its last process group; call "
              "init_process_group again");
}

bool World::is_open() const {
  const std::lock_guard lock(mutex_);
  return endpoint_ != nullptr;
}

bool World::is_own() const { return ::getpid() == owner_; }

void World::enter() {
  const std::lock_guard lock(mutex_);
  ++num_groups_;
}

void World::leave(std::chrono::milliseconds patience) {
  std::unique_ptr<transport::Endpoint> last;
  {
    const std::lock_guard lock(mutex_);
    if (--num_groups_ == 0) last = std::move(endpoint_);
  }
  if (!last) return;
  try {
    last->shutdown(patience);
  } catch (const Error&) {
    // Of a rank that stays longer, or of a failure that the groups have reported: this rank goes.
  }
}

}  // namespace trireme::backend
