#include <algorithm>
#include <numeric>
#include <utility>

#include "trireme/wire/c/handles.h"
#include "trireme/wire/c/status.h"

namespace trireme::c {
namespace {

/// FNV-1a of the name: all members compute the same one, and no two groups of a world that have
/// different names are likely to have one id (about n^2 / 2^61).
std::uint64_t id_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash >> 4;  // an id has 60 bits
}

std::vector<int> ranks_of(const World& world, const std::int32_t* ranks, std::int32_t num_ranks) {
  if (ranks == nullptr) {
    std::vector<int> all(world.ranks.world_size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  if (num_ranks < 1) refuse("'num_ranks' is " + std::to_string(num_ranks) + ", expected 1 or more");
  return {ranks, ranks + num_ranks};
}

/// Until the operation's own end; the world fails at the deadline.
void wait_to_the_end(TriremeWork& work) {
  collectives::Group& group = *work.named->group;
  transport::Endpoint& endpoint = work.named->world->ranks.endpoint();
  const transport::Awaited awaited = work.peer
                                         ? transport::message_work(*work.work, endpoint, *work.peer)
                                         : collectives::group_work(*work.work, group);
  transport::await(
      awaited, {.deadline = group.deadline(), .logger = work.named->world->logger},
      {.rank = endpoint.rank(), .group = work.named->name, .operation = work.operation});
}

}  // namespace

NamedGroup::NamedGroup(std::shared_ptr<World> of, std::vector<int> ranks,
                       const collectives::GroupOptions& options)
    : world(std::move(of)), name(options.name) {
  group.emplace(world->ranks.endpoint(), std::move(ranks), options);
  const std::lock_guard lock(world->mutex);
  world->group_names.insert(name);
}

NamedGroup::~NamedGroup() {
  group.reset();
  const std::lock_guard lock(world->mutex);
  world->group_names.erase(name);
}

}  // namespace trireme::c

using trireme::c::guarded;
using trireme::c::needed;

extern "C" {

TriremeStatus trireme_group_create(TriremeWorld* world, const int32_t* ranks, int32_t num_ranks,
                                   const char* name, int64_t deadline_ms, TriremeGroup** group) {
  return guarded([&] {
    TriremeGroup*& result = needed(group, "group");
    const auto& of = needed(world, "world").world;
    const std::string group_name = &needed(name, "name");
    if (group_name.empty()) trireme::c::refuse("the name of a group is empty");
    if (deadline_ms < 0) trireme::c::refuse("'deadline_ms' is below 0");
    if (of->has_left) trireme::c::refuse("the world has been shut down");
    {
      const std::lock_guard lock(of->mutex);
      if (of->group_names.contains(group_name)) {
        trireme::c::refuse("there is a group '" + group_name + "' already; choose another name");
      }
    }
    result = new TriremeGroup{std::make_shared<trireme::c::NamedGroup>(
        of, trireme::c::ranks_of(*of, ranks, num_ranks),
        trireme::collectives::GroupOptions{
            .name = group_name,
            .id = trireme::c::id_of(group_name),
            .deadline = deadline_ms > 0 ? trireme::c::milliseconds_of(deadline_ms) : of->deadline,
            .logger = of->logger,
            .costs = of->costs})};
  });
}

TriremeStatus trireme_group_rank(const TriremeGroup* group, int32_t* group_rank) {
  return guarded([&] {
    needed(group_rank, "group_rank") = needed(group, "group").named->group->group_rank();
  });
}

TriremeStatus trireme_group_size(const TriremeGroup* group, int32_t* size) {
  return guarded([&] { needed(size, "size") = needed(group, "group").named->group->size(); });
}

void trireme_group_free(TriremeGroup* group) { delete group; }

TriremeStatus trireme_allocate(TriremeGroup* group, int64_t bytes, void** memory) {
  return guarded([&] {
    void*& result = needed(memory, "memory");
    if (bytes < 1)
      trireme::c::refuse("'bytes' is " + std::to_string(bytes) + ", expected 1 or more");
    result = needed(group, "group").named->group->allocate(static_cast<std::size_t>(bytes)).data();
  });
}

TriremeStatus trireme_attach_hash(TriremeGroup* group, uint64_t hash) {
  return guarded([&] { needed(group, "group").named->group->attach_hash(hash); });
}

TriremeStatus trireme_wait(TriremeWork* work, int64_t timeout_ms) {
  return guarded([&]() -> TriremeStatus {
    TriremeWork& awaited = needed(work, "work");
    if (timeout_ms < 0) {
      trireme::c::wait_to_the_end(awaited);
      return kTriremeOk;
    }
    constexpr std::int64_t kMaxMs = std::int64_t{1000} * 3600 * 24 * 365;
    const std::chrono::milliseconds time(std::min(timeout_ms, kMaxMs));
    return awaited.work->wait_for(time) ? kTriremeOk : kTriremePending;
  });
}

void trireme_work_free(TriremeWork* work) { delete work; }

}  // extern "C"
