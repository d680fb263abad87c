#include "trireme/wire/endpoint/ofi/world.h"

#include <optional>
#include <string>
#include <utility>

#include "trireme/base/environment.h"
#include "trireme/wire/c/handles.h"

namespace trireme::c {
namespace {

constexpr std::int64_t kUsualDeadlineMs = 300'000;

TriremeWorldOptions usual_world_options() {
  return {.struct_bytes = sizeof(TriremeWorldOptions),
          .rank = 0,
          .world_size = 1,
          .store_host = "127.0.0.1",
          .store_port = 0,
          .serves_store = 1,
          .name = "world",
          .deadline_ms = kUsualDeadlineMs,
          .shares_memory = 1,
          .token = nullptr,
          .ofi_provider = nullptr};
}

void check(const TriremeWorldOptions& options) {
  check_struct_bytes(options.struct_bytes, sizeof options);
  needed(options.store_host, "store_host");
  needed(options.name, "name");
  if (options.deadline_ms <= 0) refuse("'deadline_ms' must be above 0");
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    refuse("there is no rank " + std::to_string(options.rank) + " in a world of " +
           std::to_string(options.world_size) + " ranks");
  }
  const bool picks_port = options.world_size == 1 && options.serves_store != 0;
  if (options.store_port > 65535 || options.store_port < (picks_port ? 0 : 1)) {
    refuse("'store_port' is " + std::to_string(options.store_port) +
           "; expected the port at which ranks meet, 1 to 65535");
  }
}

/// As given, else as the environment says.
///
/// rank   0 warns where none is set.
transport::Token token_of(const char* given, int store_port, int rank) {
  if (given == nullptr) {
    const Environment environment = read_environment();
    const Logger logger(rank == 0 ? environment.log_level : LogLevel::kOff);
    return transport::token_of_store(environment, store_port, logger);
  }
  if (*given == '\0') refuse("'token' is empty; null is for that of the environment");
  return transport::Token(given);
}

/// host   of this rank, see TcpOptions.
std::shared_ptr<SharedWorld> connect(transport::Meeting meeting, const TriremeWorldOptions& options,
                                     const std::string& host) {
  transport::ElasticWorldOptions own{.rank = options.rank,
                                     .world_size = options.world_size,
                                     .name = options.name,
                                     .deadline = milliseconds_of(options.deadline_ms),
                                     .host = host,
                                     .on_abandon = nullptr,
                                     .shares_memory = options.shares_memory != 0,
                                     .ofi_provider = std::nullopt};
  if (options.ofi_provider != nullptr) own.ofi_provider = options.ofi_provider;
  auto world = std::make_shared<SharedWorld>(std::move(meeting), std::move(own));
  world->logger = Logger(read_environment().log_level, "rank " + std::to_string(options.rank));
  return world;
}

std::shared_ptr<SharedWorld> connect(const TriremeWorldOptions& options) {
  check(options);
  transport::Meeting meeting{.store = {options.store_host, options.store_port},
                             .token = token_of(options.token, options.store_port, options.rank),
                             .server = nullptr,
                             .announcement = nullptr};
  if (options.rank == 0 && options.serves_store != 0) {
    meeting.server = std::make_unique<transport::StoreServer>(meeting.store, meeting.token);
    meeting.store.port = meeting.server->port();
  }
  return connect(std::move(meeting), options, "");
}

/// Whoever would still use its endpoint.
void check_no_groups(SharedWorld& world, const std::string& before) {
  const std::lock_guard lock(world.mutex);
  if (world.group_names.empty()) return;
  refuse("group '" + *world.group_names.begin() + "' is to be freed, with its works, before the " +
         before);
}

std::shared_ptr<SharedWorld> connect_from_environment() {
  const Environment environment = read_environment();
  TriremeWorldOptions options = usual_world_options();
  if (!environment.ranks) return connect(options);
  const RankEnvironment& ranks = *environment.ranks;
  if (ranks.launcher == Launcher::kTorchrun) {
    throw Error(ErrorKind::kUnavailable,
                "torchrun serves a store of torch's kind at " + ranks.store_host + ":" +
                    std::to_string(ranks.store_port) +
                    ", and this library has no torch; call trireme_connect with the rank, the "
                    "world's size and a port that is free on the host of rank 0");
  }
  options.rank = ranks.rank;
  options.world_size = ranks.world_size;
  options.shares_memory = ranks.shares_memory ? 1 : 0;
  if (ranks.ofi_provider) options.ofi_provider = ranks.ofi_provider->c_str();
  const auto deadline = std::chrono::steady_clock::now() + milliseconds_of(options.deadline_ms);
  const Logger logger(environment.log_level, "rank " + std::to_string(ranks.rank));
  return connect(transport::meet(ranks, deadline, logger), options, transport::host_of(ranks));
}

}  // namespace
}  // namespace trireme::c

using trireme::c::guarded;
using trireme::c::needed;

extern "C" {

TriremeStatus trireme_store_serve(const char* host, int32_t port, const char* token,
                                  TriremeStore** store) {
  return guarded([&] {
    TriremeStore*& result = needed(store, "store");
    needed(host, "host");
    if (port < 0 || port > 65535) trireme::c::refuse("there is no port " + std::to_string(port));
    trireme::Descriptor listener = trireme::transport::listen_on({host, port});
    const int own_port = trireme::transport::local_address(listener).port;
    const trireme::transport::Token own_token = trireme::c::token_of(token, own_port, 0);
    result = new TriremeStore{trireme::transport::StoreServer(own_token, std::move(listener))};
  });
}

TriremeStatus trireme_store_port(const TriremeStore* store, int32_t* port) {
  return guarded([&] { needed(port, "port") = needed(store, "store").server.port(); });
}

void trireme_store_free(TriremeStore* store) { delete store; }

TriremeStatus trireme_world_options(TriremeWorldOptions* options, size_t struct_bytes) {
  return guarded([&] {
    trireme::c::check_struct_bytes(struct_bytes, sizeof(TriremeWorldOptions));
    needed(options, "options") = trireme::c::usual_world_options();
  });
}

TriremeStatus trireme_connect(const TriremeWorldOptions* options, TriremeWorld** world) {
  return guarded([&] {
    TriremeWorld*& result = needed(world, "world");
    result = new TriremeWorld{trireme::c::connect(needed(options, "options"))};
  });
}

TriremeStatus trireme_connect_from_environment(TriremeWorld** world) {
  return guarded([&] {
    TriremeWorld*& result = needed(world, "world");
    result = new TriremeWorld{trireme::c::connect_from_environment()};
  });
}

TriremeStatus trireme_rank(const TriremeWorld* world, int32_t* rank) {
  return guarded([&] { needed(rank, "rank") = needed(world, "world").world->ranks.rank(); });
}

TriremeStatus trireme_world_size(const TriremeWorld* world, int32_t* world_size) {
  return guarded(
      [&] { needed(world_size, "world_size") = needed(world, "world").world->ranks.world_size(); });
}

TriremeStatus trireme_shutdown(TriremeWorld* world) {
  return guarded([&] {
    trireme::c::SharedWorld& state = *needed(world, "world").world;
    trireme::c::check_no_groups(state, "shutdown");
    if (std::exchange(state.has_left, true)) trireme::c::refuse("the world has been shut down");
    state.ranks.shutdown();
  });
}

TriremeStatus trireme_abort(TriremeWorld* world, const char* reason) {
  return guarded([&] { needed(world, "world").world->ranks.abort(&needed(reason, "reason")); });
}

TriremeStatus trireme_regroup(TriremeWorld* world, const int32_t* members, int32_t num_members,
                              int64_t window_ms) {
  return guarded([&] {
    trireme::c::SharedWorld& state = *needed(world, "world").world;
    if (window_ms < 0) {
      trireme::c::refuse("'window_ms' is " + std::to_string(window_ms) + ", expected 0 or more");
    }
    if (members != nullptr && num_members < 1) {
      trireme::c::refuse("'num_members' is " + std::to_string(num_members) +
                         ", expected 1 or more");
    }
    trireme::c::check_no_groups(state, "regroup");
    if (state.has_left) trireme::c::refuse("the world has been shut down");
    trireme::transport::RegroupOptions options{.members = {},
                                               .window = trireme::c::milliseconds_of(window_ms)};
    if (members != nullptr) options.members.assign(members, members + num_members);
    state.ranks.regroup(options);
    state.measure();
  });
}

TriremeStatus trireme_first_rank(const TriremeWorld* world, int32_t rank, int32_t* first_rank) {
  return guarded([&] {
    const std::vector<int>& origins = needed(world, "world").world->ranks.origins();
    std::int32_t& result = needed(first_rank, "first_rank");
    if (rank < 0 || rank >= std::ssize(origins)) {
      trireme::c::refuse("there is no rank " + std::to_string(rank) + " in a world of " +
                         std::to_string(origins.size()) + " ranks");
    }
    result = origins[static_cast<std::size_t>(rank)];
  });
}

void trireme_world_free(TriremeWorld* world) { delete world; }

}  // extern "C"
