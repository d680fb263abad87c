#include "trireme/engine/train/replica_buffers.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"
#include "trireme/kernels/reduce/combine.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {
namespace {

kernels::ReduceOp operation_of(ReplicaPolicy policy) {
  return policy == ReplicaPolicy::kAverage ? kernels::ReduceOp::kAverage : kernels::ReduceOp::kSum;
}

bool is_written(const graph::Buffer& buffer) {
  return buffer.policy == graph::BufferPolicy::kEager;
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text.empty() ? "none" : text;
}

[[noreturn]] void refuse(const std::string& buffer, const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "buffer '" + buffer + "' " + problem);
}

/// One of these policies, of a buffer of the graph.
void check_policy(const graph::Graph& graph, const std::string& name, ReplicaPolicy policy) {
  const auto found = std::ranges::find(graph.buffers, name, &graph::Buffer::name);
  if (found == graph.buffers.end() || !is_written(*found)) {
    refuse(name, "takes no policy; those that the forward writes in a way of their own are: " +
                     quoted_list(written_buffers(graph)));
  }
  const graph::Value& value = graph.values[found->value];
  const bool is_bool = value.dtype == Dtype::kBool;
  if (policy != ReplicaPolicy::kFirst &&
      (is_bool || !kernels::is_reducible(value.dtype, operation_of(policy)))) {
    refuse(name, "is of dtype " + std::string(to_text(value.dtype)) + ", of which there is no " +
                     to_text(policy) + "; take first");
  }
  for (const graph::Buffer& other : graph.buffers) {
    if (other.name == name || graph.values[other.value].storage_id != value.storage_id) continue;
    refuse(name, "shares memory with buffer '" + other.name +
                     "', so replicas cannot combine it; use one replica");
  }
}

at::Tensor take(std::span<const std::byte>& bytes, const at::Tensor& like) {
  at::Tensor tensor = at::empty(like.sizes(), like.options());
  TRIREME_CHECK(bytes.size() >= tensor.nbytes(), "statistics of replicas differ in size");
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), tensor.nbytes());
  bytes = bytes.subspan(tensor.nbytes());
  return tensor;
}

void append(std::vector<std::byte>& bytes, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  const auto* data = static_cast<const std::byte*>(dense.const_data_ptr());
  bytes.insert(bytes.end(), data, data + dense.nbytes());
}

}  // namespace

std::vector<std::string> written_buffers(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const graph::Buffer& buffer : graph.buffers) {
    if (is_written(buffer)) names.push_back(buffer.name);
  }
  return names;
}

std::string why_one_replica(const graph::Graph& graph, const ReplicaPolicies& policies) {
  for (const int index : graph::written_parameters(graph)) {
    return "the forward rescales rows of parameter '" + graph.parameters[index].name +
           "' (max_norm), and replicas would rescale other rows each; use one replica";
  }
  for (const std::string& name : written_buffers(graph)) {
    if (policies.contains(name)) continue;
    return "the forward writes buffer '" + name +
           "' in a way that replicas cannot combine by themselves; say what they make of it, "
           "`--buffer " +
           name + "=first`, `average` or `sum` (of their changes), or use one replica";
  }
  return "";
}

void check_buffers(const graph::Graph& graph, const ReplicaPolicies& policies,
                   const layout::Role& role) {
  for (const auto& [name, policy] : policies) check_policy(graph, name, policy);
  if (role.mesh.data == 1) return;
  const std::string why = why_one_replica(graph, policies);
  if (!why.empty()) throw Error(ErrorKind::kInvalidArgument, why);
  const std::vector<std::string> written = written_buffers(graph);
  if (role.is_even() || written.empty()) return;
  refuse(written.front(),
         "is written by forwards, and some ranks run several replicas, which would write it in "
         "turn; place a rank for each replica");
}

ReplicaBuffers::ReplicaBuffers(const record::Recording& recording, const layout::Plan& plan,
                               const std::vector<int>& stages, const ReplicaPolicies& policies) {
  if (layout::train_role(plan).mesh.data == 1) return;
  const auto used_by = layout::stages_of_values(recording.graph, plan);
  for (const graph::Buffer& buffer : recording.graph.buffers) {
    const auto users = used_by.find(buffer.value);
    if (!is_written(buffer) || users == used_by.end()) continue;
    if (!layout::has_any(users->second, stages)) continue;
    buffers_.push_back(
        {recording.tensors[buffer.value].detach(), policies.at(buffer.name), at::Tensor()});
  }
}

void ReplicaBuffers::begin_step() {
  const at::NoGradGuard no_grad;
  for (Written& buffer : buffers_) {
    if (buffer.policy == ReplicaPolicy::kSum) buffer.before = buffer.tensor.clone();
  }
}

void ReplicaBuffers::combine(collectives::Group& replicas, const Wait& wait) const {
  const at::NoGradGuard no_grad;
  for (const Written& buffer : buffers_) {
    const bool is_sum = buffer.policy == ReplicaPolicy::kSum;
    at::Tensor mine = is_sum ? buffer.tensor.sub(buffer.before) : buffer.tensor.clone();
    mine = mine.contiguous();
    const std::span bytes(static_cast<std::byte*>(mine.mutable_data_ptr()), mine.nbytes());
    if (buffer.policy == ReplicaPolicy::kFirst) {
      wait(*replicas.broadcast(bytes, 0), "buffers");
    } else {
      const Dtype dtype = record::to_dtype(mine.scalar_type());
      wait(*replicas.all_reduce({bytes, dtype}, operation_of(buffer.policy)), "buffers");
    }
    at::Tensor target = buffer.tensor;
    target.copy_(is_sum ? buffer.before.add(mine) : mine);
  }
}

bool has_statistics(const Statistics& statistics) {
  return std::any_of(statistics.begin(), statistics.end(),
                     [](const auto& microbatch) { return !microbatch.empty(); });
}

std::vector<std::byte> to_bytes(const Statistics& statistics) {
  std::vector<std::byte> bytes;
  for (const auto& microbatch : statistics) {
    for (const program::NormStatistics& one : microbatch) {
      bytes.push_back(std::byte{one.is_strided});
      append(bytes, one.mean);
      append(bytes, one.variance);
    }
  }
  return bytes;
}

Statistics from_bytes(std::span<const std::byte> bytes, const Statistics& like, int num_replicas) {
  Statistics result;
  for (int replica = 0; replica < num_replicas; ++replica) {
    for (const auto& microbatch : like) {
      result.emplace_back();
      for (const program::NormStatistics& one : microbatch) {
        TRIREME_CHECK(!bytes.empty(), "statistics of replicas differ in size");
        const bool is_strided = bytes.front() != std::byte();
        bytes = bytes.subspan(1);
        const at::Tensor mean = take(bytes, one.mean);
        result.back().push_back({one.node, mean, take(bytes, one.variance), is_strided});
      }
    }
  }
  return result;
}

}  // namespace trireme::train
