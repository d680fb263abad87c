#include "trireme/wire/endpoint/sim/world.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "trireme/arguments/program.h"
#include "trireme/base/environment.h"
#include "trireme/collectives.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"
#include "trireme/launch/connected_world.h"
#include "trireme/launch/run_ranks.h"
#include "trireme/session/world_maker.h"
#include "trireme/wire/collectives/group.h"

namespace trireme {
namespace {

kernels::ReduceOp operation_of(Reduction by) {
  switch (by) {
    case Reduction::kSum:
      return kernels::ReduceOp::kSum;
    case Reduction::kAverage:
      return kernels::ReduceOp::kAverage;
    case Reduction::kMin:
      return kernels::ReduceOp::kMin;
    case Reduction::kMax:
      return kernels::ReduceOp::kMax;
  }
  throw Error(ErrorKind::kInvalidArgument, "no such reduction");
}

std::span<std::byte> bytes_of(const at::Tensor& tensor, const char* what) {
  if (!tensor.defined() || !tensor.device().is_cpu() || !tensor.is_contiguous()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("{} takes a dense tensor on the CPU; give it tensor.cpu().contiguous()", what));
  }
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

/// Of this process's own making, or the place that a launcher has given it.
struct World::State {
  std::optional<launch::ConnectedWorld> own;
  launch::ConnectedWorld* connected = nullptr;  ///< Null where there is one rank.
  std::unique_ptr<transport::Endpoint> alone;
  std::optional<collectives::World> world;
  std::unique_ptr<collectives::Group> group;  ///< Of all ranks, for the calls of World.

  void join(launch::ConnectedWorld* ranks, const WorldOptions& options, LogLevel level) {
    connected = ranks;
    if (ranks != nullptr) {
      world.emplace(ranks->world());
      return;
    }
    alone = std::move(transport::make_sim_world(1)[0]);
    world.emplace(collectives::World{
        *alone,
        {.deadline = std::chrono::seconds(options.timeout_s), .logger = Logger(level, "rank 0")}});
  }

  collectives::Group& all() {
    if (!group) group = collectives::make_world_group(*world, "world");
    return *group;
  }

  void await(const transport::WorkPtr& work, const char* operation) {
    transport::await(collectives::group_work(*work, all()), world->watch,
                     {.rank = world->rank(), .operation = operation});
  }
};

World::World(const WorldOptions& options) : state_(std::make_unique<State>()) {
  const Environment environment = read_environment();
  if (environment.ranks) {
    const Logger logger(environment.log_level, "rank " + std::to_string(environment.ranks->rank));
    state_->own.emplace(*environment.ranks, logger, std::chrono::seconds(options.timeout_s));
  }
  state_->join(state_->own ? &*state_->own : nullptr, options, environment.log_level);
}

World::World(std::unique_ptr<State> state) : state_(std::move(state)) {}
World::~World() = default;
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;

int World::rank() const { return state_->world->rank(); }
int World::size() const { return state_->world->size(); }
const collectives::World& World::value() const { return *state_->world; }

void World::all_reduce(const at::Tensor& tensor, Reduction by) {
  const std::span<std::byte> bytes = bytes_of(tensor, "all_reduce");
  state_->await(
      state_->all().all_reduce({bytes, record::to_dtype(tensor.scalar_type())}, operation_of(by)),
      "all_reduce");
}

void World::broadcast(const at::Tensor& tensor, int root) {
  state_->await(state_->all().broadcast(bytes_of(tensor, "broadcast"), root), "broadcast");
}

at::Tensor World::all_gather(const at::Tensor& tensor) {
  const std::span<std::byte> mine = bytes_of(tensor, "all_gather");
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape.insert(shape.begin(), size());
  const at::Tensor all = at::empty(shape, tensor.options());
  // Only bytes go: equal numbers of them may be of other shapes.
  const std::string form =
      fmt::format("{} {}", to_text(record::to_dtype(tensor.scalar_type())), fmt::join(shape, " "));
  state_->all().attach_hash(std::hash<std::string>()(form));
  state_->await(state_->all().all_gather(mine, bytes_of(all, "all_gather")), "all_gather");
  return all;
}

void World::barrier() { state_->await(state_->all().barrier(), "barrier"); }

void World::fail(const Error& error) {
  state_->world->endpoint.poison(Error(error).add({.rank = rank()}));
}

void World::shutdown() {
  state_->group.reset();
  if (state_->connected != nullptr) state_->connected->shutdown();
}

World session::WorldMaker::make(launch::ConnectedWorld* ranks, const WorldOptions& options,
                                LogLevel level) {
  auto state = std::make_unique<World::State>();
  state->join(ranks, options, level);
  return World(std::move(state));
}

bool is_rank() { return read_environment().ranks.has_value(); }

int run_ranks(int argc, const char* const* argv, int num_ranks,
              const std::function<void(World&)>& body, const WorldOptions& options) {
  return arguments::run([&] {
    const Environment environment = read_environment();
    const launch::RankProgram program{.argv = {argv, static_cast<std::size_t>(argc)},
                                      .environment = environment,
                                      .deadline = std::chrono::seconds(options.timeout_s)};
    return launch::run_ranks(program, num_ranks, [&](launch::ConnectedWorld* ranks) {
      World world = session::WorldMaker::make(ranks, options, environment.log_level);
      try {
        body(world);
      } catch (const std::exception& failure) {
        throw program::error_of(failure);
      }
      world.shutdown();
      return kDone;
    });
  });
}

}  // namespace trireme
