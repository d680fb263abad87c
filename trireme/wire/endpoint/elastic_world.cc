#include "trireme/wire/endpoint/elastic_world.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "trireme/wire/endpoint/ofi/world.h"

namespace trireme::transport {
namespace {

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(std::max(count, 0)));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, problem);
}

void check_members(const RegroupOptions& options, int rank, int world_size) {
  std::vector<int> sorted = options.members;
  std::ranges::sort(sorted);
  if (!sorted.empty() && (sorted.front() < 0 || sorted.back() >= world_size ||
                          std::ranges::adjacent_find(sorted) != sorted.end())) {
    refuse("the members of a new generation are different ranks of the one before, 0 to " +
           std::to_string(world_size - 1));
  }
  if (!sorted.empty() && !std::ranges::binary_search(sorted, rank)) {
    refuse("rank " + std::to_string(rank) +
           " is none of the members that it gives; a rank that does not go on ends");
  }
  if (options.window.count() < 0) refuse("the window to call in is below 0");
}

}  // namespace

std::unique_ptr<Endpoint> connect_world(const TcpOptions& options,
                                        const std::optional<std::string>& provider) {
  if (!provider) return connect_tcp_world(options);
  return connect_ofi_world({.tcp = options, .provider = *provider});
}

ElasticWorld::ElasticWorld(Meeting meeting, ElasticWorldOptions options)
    : options_(std::move(options)),
      meeting_(std::move(meeting)),
      store_(meeting_.store, options_.rank, {.deadline = options_.deadline}, meeting_.token),
      rank_(options_.rank),
      origins_(first_ranks(options_.world_size)) {
  connect();
}

Endpoint& ElasticWorld::endpoint() const {
  if (endpoint_) return *endpoint_;
  throw Error(ErrorKind::kUnavailable,
              "the ranks of the new generation are not connected: `regroup` failed; call it again, "
              "or end");
}

void ElasticWorld::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (endpoint_) {
    endpoint_->abort(reason);
  } else {
    abort_reason_ = reason;
  }
}

void ElasticWorld::regroup(const RegroupOptions& options) {
  check_members(options, rank_, world_size());
  if (endpoint_ && !endpoint_->failure()) endpoint_->abort("it regroups");
  const Generation begun = agree(options);
  std::vector<int> origins;
  for (const int member : begun.members) origins.push_back(origins_.at(member));
  std::unique_ptr<Endpoint> ended;  // outside the lock, as its end may take a second
  {
    const std::lock_guard lock(mutex_);
    ended = std::move(endpoint_);
  }
  ended.reset();
  rank_ = begun.rank;
  origins_ = std::move(origins);
  ++generation_;
  connect();
}

void ElasticWorld::connect() {
  const TcpOptions tcp{.store = store_,
                       .rank = rank_,
                       .world_size = world_size(),
                       .name = name_of(generation_),
                       .deadline = options_.deadline,
                       .host = options_.host,
                       .on_abandon = options_.on_abandon,
                       .logger = options_.logger,
                       .shares_memory = options_.shares_memory};
  std::unique_ptr<Endpoint> endpoint = connect_world(tcp, options_.ofi_provider);
  const std::lock_guard lock(mutex_);
  endpoint_ = std::move(endpoint);
  if (abort_reason_) endpoint_->abort(*std::exchange(abort_reason_, std::nullopt));
}

Generation ElasticWorld::agree(const RegroupOptions& options) {
  try {
    RegroupOptions sorted = options;
    std::ranges::sort(sorted.members);
    return store_.regroup(name_of(generation_ + 1), world_size(), sorted);
  } catch (const Error& error) {
    if (store_.is_connected()) throw;
    Error lost(ErrorKind::kPeerLost,
               "this world cannot regroup: the store at " + to_text(store_.address()) +
                   " has ended with the process that served it. To outlive any rank, serve it from "
                   "a process that is none (transport::StoreServer, trireme_store_serve)",
               error);
    throw Error(lost.add({.rank = rank_, .operation = "regroup"}));
  }
}

std::string ElasticWorld::name_of(int generation) const {
  if (generation == 0) return options_.name;
  return options_.name + " generation " + std::to_string(generation);
}

void ElasticWorld::shutdown() {
  endpoint().shutdown(options_.deadline);
  store_.shutdown();
}

}  // namespace trireme::transport
