#include "trireme/engine/shard/shard_functions.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/engine/program/stage_autograd.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/engine/shard/shard_edges.h"
#include "trireme/kernels/reduce/combine.h"
#include "trireme/plan/sharding/sharded_graph.h"

namespace trireme::shard {
namespace {

using torch::autograd::edge_list;
using torch::autograd::variable_list;

/// Rounds where elements are rounded, so that it does not matter how many shards a rank has.
constexpr kernels::ReduceOp kSum = kernels::ReduceOp::kRoundedSum;

/// Partial results that lie alike and densely are added as they lie, others in the order of their dimensions.
TensorList alike(const TensorList& partial) {
  const at::Tensor& first = partial.front();
  bool are_alike = first.is_non_overlapping_and_dense();
  for (const at::Tensor& tensor : partial) {
    are_alike = are_alike && tensor.strides() == first.strides();
  }
  if (are_alike) return partial;
  TensorList result;
  for (const at::Tensor& tensor : partial) result.push_back(tensor.contiguous());
  return result;
}

void add_others(const at::Tensor& sum, kernels::ReduceOp op, const ShardPeers& peers) {
  const Dtype dtype = record::to_dtype(sum.scalar_type());
  const transport::WorkPtr work =
      peers.group->all_reduce(collectives::Elements(bytes_of(sum), dtype), op);
  transport::await(collectives::group_work(*work, *peers.group), peers.watch,
                   {.rank = peers.group->endpoint().rank(), .operation = "sum over shards"});
}

at::Tensor combined(const TensorList& partial, kernels::ReduceOp op, const ShardPeers& peers) {
  const TensorList sources = alike(partial);
  const at::Tensor sum = at::empty_like(sources.front());
  std::vector<const std::byte*> pointers;
  for (const at::Tensor& source : sources) {
    pointers.push_back(static_cast<const std::byte*>(source.const_data_ptr()));
  }
  std::byte* target = bytes_of(sum).data();
  kernels::combine({.dtype = record::to_dtype(sum.scalar_type()), .op = op}, pointers,
                   std::span(&target, 1), sum.numel());
  if (peers.group != nullptr) add_others(sum, op, peers);
  return sum;
}

/// Backward of a sum: every shard gets the gradient of the whole.
class SumNode : public torch::autograd::Node {
 public:
  explicit SumNode(edge_list&& shards) : Node(std::move(shards)) {}
  variable_list apply(variable_list&& gradients) override {
    return variable_list(num_outputs(), gradients.front());
  }
};

/// Backward of what is given to shards: the whole gets the sum of their gradients.
class GivenNode : public torch::autograd::Node {
 public:
  GivenNode(edge_list&& whole, ShardPeers peers)
      : Node(std::move(whole)), peers_(std::move(peers)) {}

  variable_list apply(variable_list&& gradients) override {
    const auto any = std::ranges::find_if(gradients, &at::Tensor::defined);
    if (any == gradients.end()) return {at::Tensor()};
    for (at::Tensor& gradient : gradients) {
      if (!gradient.defined()) gradient = at::zeros_like(*any);
    }
    return {sum_over_shards(gradients, peers_)};
  }

 private:
  ShardPeers peers_;
};

TensorList sum(const TensorList& partial, const ShardPeers& peers) {
  at::Tensor sum = [&] {
    const at::NoGradGuard no_grad;
    return sum_over_shards(partial, peers);
  }();
  if (records_gradient(partial)) join(sum, program::make_node<SumNode>(edges_of(partial)));
  return {sum};
}

TensorList give(const TensorList& whole, int num_local, const ShardPeers& peers) {
  TensorList shards;
  for (int i = 0; i < num_local; ++i) shards.push_back(whole.front().detach());
  if (!records_gradient(whole)) return shards;
  const auto node = program::make_node<GivenNode>(edges_of(whole), peers);
  for (at::Tensor& shard : shards) join(shard, node);
  return shards;
}

std::shared_ptr<const OpaqueFunction> function(std::string_view name,
                                               std::function<TensorList(const TensorList&)> call) {
  auto made = std::make_shared<OpaqueFunction>();
  made->name = name;
  made->call = std::move(call);
  return made;
}

}  // namespace

at::Tensor sum_over_shards(const TensorList& partial, const ShardPeers& peers) {
  return combined(partial, kSum, peers);
}

std::map<std::string, std::shared_ptr<const OpaqueFunction>> make_shard_functions(
    int num_local, const ShardPeers& peers) {
  std::map<std::string, std::shared_ptr<const OpaqueFunction>> functions;
  functions.emplace(sharding::kSumOfShards,
                    function(sharding::kSumOfShards,
                             [peers](const TensorList& partial) { return sum(partial, peers); }));
  functions.emplace(
      sharding::kMaximumOfShards,
      function(sharding::kMaximumOfShards, [peers](const TensorList& partial) -> TensorList {
        return {combined(partial, kernels::ReduceOp::kMax, peers)};
      }));
  functions.emplace(sharding::kGivenToShards,
                    function(sharding::kGivenToShards, [peers, num_local](const TensorList& whole) {
                      return give(whole, num_local, peers);
                    }));
  return functions;
}

}  // namespace trireme::shard
