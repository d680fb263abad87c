#include "python/backend/ddp_hook.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>

#include <bit>
#include <string>
#include <utility>

#include "python/backend/torch_errors.h"
#include "trireme/error.h"
#include "trireme/kernels/reduce/tree.h"

namespace trireme::backend {

DdpHook::DdpHook(c10::intrusive_ptr<Backend> backend, Lanes lanes)
    : backend_(std::move(backend)), lanes_(lanes), shared_(backend_->group()) {}

c10::intrusive_ptr<c10::ivalue::Future> DdpHook::runHook(c10d::GradBucket& bucket) {
  const at::AutoDispatchBelowAutograd below;
  const at::NoGradGuard no_grad;
  const at::Tensor buffer = bucket.getBuffer();
  if (num_backwards_ > 0 && !shared_.contains(buffer)) shared_.move(buffer);
  if (!lanes_.are_fixed || add_lane(bucket)) {
    std::vector<at::Tensor> tensors = {buffer};
    c10d::AllreduceOptions options;
    options.reduceOp = lanes_.are_fixed ? c10d::ReduceOp::SUM : c10d::ReduceOp::AVG;
    works_[buffer.data_ptr()] = backend_->allreduce(tensors, options);
  }
  if (bucket.isLast()) ++num_backwards_;
  // Nobody has to tell the reducer that it is done: parseHookResult waits.
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
  future->markCompleted(at::IValue(buffer));
  return future;
}

at::Tensor DdpHook::parseHookResult(const c10::IValue& result) {
  at::Tensor buffer = result.toTensor();
  const auto found = works_.find(buffer.data_ptr());
  if (found == works_.end()) return buffer;
  const c10::intrusive_ptr<c10d::Work> work = std::move(found->second);
  works_.erase(found);
  work->wait();
  return buffer;
}

/// Returns whether the bucket holds the sum of all lanes of this rank; else zeros.
bool DdpHook::add_lane(c10d::GradBucket& bucket) {
  const std::vector<at::Tensor> parameters = bucket.getParameters();
  std::vector<at::Tensor> gradients = bucket.getGradients();
  const double share = 1.0 / lanes_.all;
  bool is_last = true;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<at::Tensor>& before = lanes_of_[parameters[i].unsafeGetTensorImpl()];
    gradients[i].mul_(share).add_(0.0);  // a zero is +0, whether it was added to another or not
    is_last = static_cast<int>(before.size()) + 1 == lanes_.own;
    if (is_last) {
      add_lanes_of(parameters[i], gradients[i]);
    } else {
      before.push_back(gradients[i].clone());
    }
  }
  if (!is_last) bucket.getBufferRef().zero_();
  return is_last;
}

/// gradient: the last lane's; becomes the sum of all.
void DdpHook::add_lanes_of(const at::Tensor& parameter, at::Tensor& gradient) {
  std::vector<at::Tensor> lanes = std::exchange(lanes_of_[parameter.unsafeGetTensorImpl()], {});
  if (lanes.empty()) return;
  lanes.push_back(gradient);
  for (const kernels::Merge& merge : kernels::tree_merges(lanes_.own)) {
    lanes[static_cast<std::size_t>(merge.left)].add_(lanes[static_cast<std::size_t>(merge.right)]);
  }
  gradient.copy_(lanes.front());
}

void register_ddp_hook(c10d::Reducer& reducer, c10::intrusive_ptr<Backend> backend, int num_lanes) {
  const int size = backend->getSize();
  DdpHook::Lanes lanes{.own = 1, .all = num_lanes, .are_fixed = num_lanes > 0};
  if (lanes.are_fixed) {
    lanes.own = num_lanes / size;
    if (lanes.own * size != num_lanes || !std::has_single_bit(static_cast<unsigned>(lanes.own))) {
      throw_refusal(Error(ErrorKind::kInvalidArgument,
                          std::to_string(num_lanes) + " lanes for " + std::to_string(size) +
                              " ranks; expected 1, 2, 4, ... of them for each"),
                    {});
    }
  }
  reducer.register_comm_hook(std::make_unique<DdpHook>(std::move(backend), lanes));
}

}  // namespace trireme::backend
