#include <algorithm>
#include <numeric>
#include <utility>

#include "trireme/base/cuda/stream.h"
#include "trireme/wire/c/handles.h"

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

TriremeGroupOptions usual_group_options() {
  return {.struct_bytes = sizeof(TriremeGroupOptions),
          .name = "all",
          .ranks = nullptr,
          .num_ranks = 0,
          .deadline_ms = 0,
          .any_order = 0,
          .num_reducers = 0,
          .device = "cpu",
          .stream = nullptr,
          .checks_calls = 0,
          .algorithm = nullptr};
}

void check(const TriremeGroupOptions& options) {
  check_struct_bytes(options.struct_bytes, sizeof options);
  if (needed(options.name, "name") == '\0') refuse("the name of a group is empty");
  if (options.deadline_ms < 0) refuse("'deadline_ms' is below 0");
  needed(options.device, "device");
}

std::vector<int> ranks_of(const SharedWorld& world, const TriremeGroupOptions& options) {
  if (options.ranks == nullptr) {
    std::vector<int> all(world.ranks.world_size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  if (options.num_ranks < 1) {
    refuse("'num_ranks' is " + std::to_string(options.num_ranks) + ", expected 1 or more");
  }
  return {options.ranks, options.ranks + options.num_ranks};
}

std::optional<collectives::Algorithm> algorithm_of(const char* name) {
  if (name == nullptr) return std::nullopt;
  const auto algorithm = collectives::parse_algorithm(name);
  if (!algorithm) refuse("there is no algorithm '" + std::string(name) + "'");
  return algorithm;
}

CUstream_st* handle_of(void* stream) { return static_cast<CUstream_st*>(stream); }

/// Null where the caller has given none.
std::unique_ptr<Stream> stream_of(const Device& device, void* stream) {
  if (stream == nullptr) return nullptr;
  if (device.kind == DeviceKind::kCpu) refuse("'stream' is for a group on a GPU; set 'device'");
  return cuda::borrow_stream(device.index, handle_of(stream));
}

/// Of a group in that world.
std::shared_ptr<NamedGroup> make_group(const std::shared_ptr<SharedWorld>& world,
                                       const TriremeGroupOptions& options) {
  check(options);
  const std::string name = options.name;
  {
    const std::lock_guard lock(world->mutex);
    if (world->group_names.contains(name)) {
      refuse("there is a group '" + name + "' already; choose another name");
    }
  }
  const Device device = parse_device(options.device);
  collectives::GroupOptions own{
      .name = name,
      .id = id_of(name),
      .deadline = options.deadline_ms > 0 ? milliseconds_of(options.deadline_ms) : world->deadline,
      .order = options.any_order != 0 ? collectives::Order::kAny : collectives::Order::kCanonical,
      .logger = world->logger,
      .device = device,
      .checks_calls = options.checks_calls != 0,
      .num_reducers = options.num_reducers,
      .costs = world->costs,
      .algorithm = algorithm_of(options.algorithm)};
  return std::make_shared<NamedGroup>(world, ranks_of(*world, options), std::move(own),
                                      stream_of(device, options.stream));
}

/// Until the operation's own end; the world fails at the deadline.
void wait_to_the_end(TriremeWork& work) {
  collectives::Group& group = *work.named->group;
  transport::Endpoint& endpoint = work.named->world->ranks.endpoint();
  const transport::Awaited awaited =
      work.peers.empty() ? collectives::group_work(*work.work, group)
                         : collectives::group_message(*work.work, group, work.peers);
  transport::await(
      awaited, {.deadline = group.deadline(), .logger = work.named->world->logger},
      {.rank = endpoint.rank(), .group = work.named->name, .operation = work.operation});
}

}  // namespace

NamedGroup::NamedGroup(std::shared_ptr<SharedWorld> of, std::vector<int> ranks,
                       collectives::GroupOptions options, std::unique_ptr<Stream> borrowed)
    : world(std::move(of)),
      name(options.name),
      device(options.device),
      stream(std::move(borrowed)) {
  options.stream = stream.get();
  group.emplace(world->ranks.endpoint(), std::move(ranks), std::move(options));
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

TriremeStatus trireme_group_options(TriremeGroupOptions* options, size_t struct_bytes) {
  return guarded([&] {
    trireme::c::check_struct_bytes(struct_bytes, sizeof(TriremeGroupOptions));
    needed(options, "options") = trireme::c::usual_group_options();
  });
}

TriremeStatus trireme_group_create(TriremeWorld* world, const TriremeGroupOptions* options,
                                   TriremeGroup** group) {
  return guarded([&] {
    TriremeGroup*& result = needed(group, "group");
    const auto& of = needed(world, "world").world;
    if (of->has_left) trireme::c::refuse("the world has been shut down");
    const TriremeGroupOptions usual = trireme::c::usual_group_options();
    result = new TriremeGroup{trireme::c::make_group(of, options == nullptr ? usual : *options)};
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

TriremeStatus trireme_group_set_deadline(TriremeGroup* group, int64_t deadline_ms) {
  return guarded([&] {
    if (deadline_ms <= 0) trireme::c::refuse("'deadline_ms' must be above 0");
    const auto deadline = trireme::c::milliseconds_of(deadline_ms);
    needed(group, "group").named->group->set_deadline(deadline);
  });
}

TriremeStatus trireme_group_abort(TriremeGroup* group, const char* reason) {
  return guarded([&] { needed(group, "group").named->group->abort(&needed(reason, "reason")); });
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

TriremeStatus trireme_run_after(void* stream, TriremeWork* work) {
  return guarded([&] {
    const TriremeWork& awaited = needed(work, "work");
    const trireme::Device& device = awaited.named->device;
    if (device.kind == trireme::DeviceKind::kCpu) {
      trireme::c::refuse("a stream runs after operations of groups on GPUs; use trireme_wait");
    }
    if (stream == nullptr) trireme::c::refuse("'stream' is null");
    const trireme::cuda::CurrentDevice current(device);  // CUDA's default streams are of that
    const auto borrowed = trireme::cuda::borrow_stream(device.index, trireme::c::handle_of(stream));
    trireme::collectives::run_after(*borrowed, *awaited.work);
  });
}

TriremeStatus trireme_received(TriremeWork* work, int32_t* source, int64_t* bytes) {
  return guarded([&] {
    const TriremeWork& ended = needed(work, "work");
    needed(source, "source");
    needed(bytes, "bytes");
    if (!ended.recv) trireme::c::refuse("'work' is of no recv");
    if (!ended.recv->wait_for(std::chrono::milliseconds(0))) {
      trireme::c::refuse("the recv has not ended; wait for it");
    }
    const auto received = ended.named->group->received(*ended.recv);
    *source = received.source;
    *bytes = static_cast<int64_t>(received.bytes);
  });
}

TriremeStatus trireme_cancel(TriremeWork* work, int32_t* is_cancelled) {
  return guarded([&] {
    const TriremeWork& recv = needed(work, "work");
    if (!recv.recv) trireme::c::refuse("only recvs can be cancelled; abort the group instead");
    needed(is_cancelled, "is_cancelled") = recv.named->group->cancel(recv.recv) ? 1 : 0;
  });
}

void trireme_work_free(TriremeWork* work) { delete work; }

}  // extern "C"
