#include "python/backend/backend.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <string>
#include <utility>

#include "python/backend/call_line.h"
#include "python/backend/monitored_barrier.h"
#include "python/backend/store_rendezvous.h"
#include "python/backend/torch_errors.h"
#include "python/backend/torch_options.h"
#include "trireme/error.h"

namespace trireme::backend {
namespace {

using c10d::OpType;

constexpr std::chrono::milliseconds kGoodbyePatience{5'000};
constexpr std::chrono::milliseconds kExitPatience{1'000};

}  // namespace

Backend::Backend(std::string name, c10::intrusive_ptr<c10d::Store> store,
                 std::shared_ptr<RankGroup> group)
    : c10d::Backend(group->rank(), group->size()),
      name_(std::move(name)),
      store_(std::move(store)),
      group_(std::move(group)) {}

Backend::~Backend() {
  const UnlockedInterpreter unlocked;  // threads that end may wait for it
  close();
}

void Backend::close() { group_->close(kExitPatience); }

c10::intrusive_ptr<c10d::Backend::Options> Backend::getBackendOptions() {
  auto options = c10::make_intrusive<Options>(name_, group_->timeout());
  options->group_name = getGroupUid();
  return options;
}

/// Errors of the call itself are thrown; those of what it has started reach the work.
Backend::WorkPtr Backend::start(Operation operation, const std::function<Call()>& call) {
  // The line costs the interpreter's lock, for which another thread may let this one wait. Who waits
  // at once, or within a backward, is on the same line when it fails.
  const bool is_in_backward = torch::autograd::get_current_graph_task_id() != -1;
  const CallLine line = operation.is_async && !is_in_backward ? call_line() : CallLine{};
  Call started;
  try {
    const at::AutoDispatchBelowAutograd below;
    const at::NoGradGuard no_grad;
    started = call();
  } catch (const Error& error) {
    throw_refusal(error, line.line == 0 ? call_line() : line);
  }
  return register_call(std::move(started), std::move(operation), line);
}

Backend::WorkPtr Backend::register_call(Call call, Operation operation, const CallLine& line) {
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    sequence = ++num_operations_;
  }
  auto work = TensorWork::make(group_, under_way_, std::move(call),
                               {.type = operation.type,
                                .title = name_ + ":" + operation.name,
                                .line = line,
                                .sequence = sequence,
                                .inputs = std::move(operation.inputs)});
  const std::lock_guard lock(mutex_);
  if (coalesced_) coalesced_->push_back(work);
  return work;
}

void Backend::startCoalescing() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!coalesced_, "startCoalescing was called before the endCoalescing of another one");
  coalesced_.emplace();
}

/// A work that ends with all of them.
Backend::WorkPtr Backend::endCoalescing() {
  std::vector<c10::intrusive_ptr<TensorWork>> parts;
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(coalesced_, "endCoalescing was called without startCoalescing");
    parts = std::move(*coalesced_);
    coalesced_.reset();
  }
  Call all;
  for (const auto& part : parts) {
    all.works.insert(all.works.end(), part->call().works.begin(), part->call().works.end());
    all.results.insert(all.results.end(), part->call().results.begin(), part->call().results.end());
  }
  all.after = [parts] {
    for (const auto& part : parts) part->wait();
  };
  return register_call(std::move(all), {OpType::COALESCED, "coalesced"}, call_line());
}

// ---- Between two ranks

Backend::WorkPtr Backend::send(std::vector<at::Tensor>& tensors, int peer, int tag) {
  return start({OpType::SEND, "send", tensors},
               [&] { return backend::send(*group_, only(tensors, "send"), peer, tag); });
}

Backend::WorkPtr Backend::recv(std::vector<at::Tensor>& tensors, int source, int tag) {
  return start({OpType::RECV, "recv", tensors},
               [&] { return backend::recv(*group_, only(tensors, "recv"), source, tag); });
}

Backend::WorkPtr Backend::recvAnysource(std::vector<at::Tensor>& tensors, int tag) {
  return start({OpType::RECVANYSOURCE, "recvAnySource", tensors}, [&] {
    return backend::recv(*group_, only(tensors, "recv"), transport::kAnySource, tag);
  });
}

// ---- Barriers and ends

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& opts) {
  return start({OpType::BARRIER, "barrier", {}, opts.asyncOp},
               [&] { return backend::barrier(*group_, timeout_of(opts.timeout)); });
}

void Backend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  const CallLine line = call_line();
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = num_monitored_++;
  }
  StoreRendezvous rendezvous(store_);
  try {
    monitored_barrier(rendezvous, {.rank = getRank(),
                                   .size = getSize(),
                                   .number = number,
                                   .timeout = timeout_of(opts.timeout).value_or(group_->timeout()),
                                   .waits_for_all = wait_all_ranks});
  } catch (const Error& error) {
    throw_refusal(error, line);
  }
}

std::uint64_t Backend::getSequenceNumberForGroup() {
  const std::lock_guard lock(mutex_);
  return num_operations_;
}

c10d::ErrorType Backend::getError() {
  const std::optional<Error> failure = group_->failure();
  if (!failure) return c10d::ErrorType::SUCCESS;
  if (failure->kind() == ErrorKind::kTimeout) return c10d::ErrorType::TIMEOUT;
  const bool is_own = failure->context().rank == group_->world()->rank();
  return is_own ? c10d::ErrorType::COMM_ERROR : c10d::ErrorType::REMOTE_ERROR;
}

void Backend::abort() { group_->abort("torch asked for it"); }

void Backend::shutdown() {
  const UnlockedInterpreter unlocked;
  group_->close(kGoodbyePatience);
}

c10::intrusive_ptr<c10d::Backend> Backend::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& opts) {
  std::vector<int> world_ranks;
  for (const int rank : ranks)
    world_ranks.push_back(group_->ranks().at(static_cast<std::size_t>(rank)));
  const auto own = std::ranges::find(ranks, getRank());
  if (own == ranks.end()) return nullptr;
  auto group = std::make_shared<RankGroup>(
      group_->world(), std::move(world_ranks),
      RankGroup::Options{.name = opts->group_name, .timeout = opts->timeout});
  return c10::make_intrusive<Backend>(name_, store, std::move(group));
}

}  // namespace trireme::backend
