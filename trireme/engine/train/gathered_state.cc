#include "trireme/engine/train/gathered_state.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "trireme/plan/layout/plan.h"

namespace trireme::train {
namespace {

constexpr transport::Tag kStateTags = transport::Tag{1} << 62;  // apart from groups and channels

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

/// Sends and receives one tensor after the other.
class Gatherer {
 public:
  Gatherer(const collectives::World& world, const RankSession& session)
      : world_(world),
        session_(session),
        origins_(origins(session.recording().graph, session.plan(), session.store())),
        plan_(session.plan()),
        place_{.rank = world.rank(), .operation = "gather weights", .step = session.next_step()} {}

  /// Of a sharded bucket, all names: brought together, sent, and in shards again.
  void take(int bucket, const std::vector<NamedTensor>& parameters, Tensors& result) {
    const bool is_here = session_.store().sharded(bucket) != nullptr;
    if (is_here) session_.operations().values()->unshard_now(bucket, place_);
    for (const auto& [name, tensor] : parameters) {
      const at::Tensor taken = take(name, tensor);
      if (taken.defined()) result[name] = is_here ? taken.clone() : taken;
    }
    if (is_here) session_.operations().values()->reshard(bucket);
  }

  /// The tensor's data on rank 0, undefined elsewhere.
  at::Tensor take(const std::string& name, const at::Tensor& tensor) {
    ++tag_;
    const auto origin = origins_.find(name);
    const int source =
        origin == origins_.end() ? 0 : layout::rank_of(plan_, origin->second.stage, 0);
    if (source == world_.rank()) {
      if (source == 0) return tensor.detach();
      const at::Tensor dense = tensor.detach().contiguous();
      wait(*world_.endpoint.send(0, tag_, bytes_of(dense)), 0);
    }
    if (world_.rank() != 0) return {};
    const at::Tensor result = at::empty(origin->second.shape, tensor.options());
    const auto work =
        world_.endpoint.recv(source, tag_, [&](std::size_t) { return bytes_of(result); });
    wait(*work, source);
    return result;
  }

 private:
  void wait(transport::Work& work, int peer) const {
    transport::await(transport::message_work(work, world_.endpoint, peer), world_.watch, place_);
  }

  const collectives::World& world_;
  const RankSession& session_;
  std::map<std::string, Origin> origins_;
  const layout::Plan& plan_;
  ErrorContext place_;
  transport::Tag tag_ = kStateTags;
};

/// By name, aliases too, the sharded bucket that a parameter is in.
std::map<std::string, int> sharded_parameters(const RankSession& session) {
  const parameters::ParameterStore& store = session.store();
  const std::vector<bool> sharded = layout::sharded_buckets(store.map(), session.plan());
  std::map<std::string, int> buckets;
  for (const graph::Parameter& parameter : session.recording().graph.parameters) {
    if (!store.is_trained(parameter.name)) continue;
    const int bucket = store.owner(parameter.name).bucket;
    if (!sharded[bucket]) continue;
    for (const std::string& alias : parameter.aliases) buckets[alias] = bucket;
    buckets[parameter.name] = bucket;
  }
  return buckets;
}

}  // namespace

Tensors gather_state(const collectives::World& world, const Workload& workload,
                     const RankSession& session) {
  Gatherer gatherer(world, session);
  const std::map<std::string, int> sharded = sharded_parameters(session);
  std::map<int, std::vector<NamedTensor>> buckets;
  Tensors result;
  for (const auto* list : {&workload.model.parameters, &workload.model.buffers}) {
    for (const NamedTensor& item : *list) {
      if (!item.tensor.defined()) continue;
      if (const auto found = sharded.find(item.name); found != sharded.end()) {
        buckets[found->second].push_back(item);
        continue;
      }
      const at::Tensor gathered = gatherer.take(item.name, item.tensor);
      if (gathered.defined()) result[item.name] = gathered;
    }
  }
  for (const auto& [bucket, parameters] : buckets) gatherer.take(bucket, parameters, result);
  return result;
}

void give_state(const Model& model, const Tensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      const auto found = tensors.find(name);
      if (found == tensors.end() || !tensor.defined()) continue;
      at::Tensor(tensor).set_data(found->second);
    }
  }
}

}  // namespace trireme::train
