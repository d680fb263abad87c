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
        origins_(origins(session.recording().graph, session.plan(), session.store())),
        plan_(session.plan()),
        place_{.rank = world.rank(), .operation = "gather weights", .step = session.next_step()} {}

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
  std::map<std::string, Origin> origins_;
  const layout::Plan& plan_;
  ErrorContext place_;
  transport::Tag tag_ = kStateTags;
};

}  // namespace

Tensors gather_state(const collectives::World& world, const Workload& workload,
                     const RankSession& session) {
  Gatherer gatherer(world, session);
  Tensors result;
  for (const auto* list : {&workload.model.parameters, &workload.model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      if (!tensor.defined()) continue;
      const at::Tensor gathered = gatherer.take(name, tensor);
      if (gathered.defined()) result[name] = gathered;
    }
  }
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
