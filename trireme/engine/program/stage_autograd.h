#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/engine/program/node_call.h"
#include "trireme/engine/record/recording.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::program {

/// Owner of an autograd node: an intrusive_ptr from torch 2.13 on, a shared_ptr before.
using NodePtr = decltype(torch::autograd::Edge::function);

template <typename T, typename... Args>
NodePtr make_node(Args&&... args) {
  auto* node = new T(std::forward<Args>(args)...);
  if constexpr (std::is_same_v<NodePtr, std::shared_ptr<torch::autograd::Node>>) {
    return NodePtr(node);
  } else {
    return NodePtr(c10::intrusive_ptr<T>::unsafe_steal_from_new(node));
  }
}

/// Takes the gradient that leaves a parameter use site, once per backward that reaches it.
class GradientSink {
 public:
  virtual ~GradientSink() = default;

  /// site       index in graph::use_sites of the graph.
  /// gradient   of the parameter's shape; any strides; may be sparse. Valid during the call.
  /// Called by the thread that runs the backward, during it.
  virtual void accept(int site, const at::Tensor& gradient) = 0;
};

/// Told of gradients that leave at use sites in backwards of this thread, before the sink takes them.
class SiteListener {
 public:
  virtual ~SiteListener() = default;
  virtual void leaving(int site, const at::Tensor& gradient) = 0;
};

/// While it lives, `listener` is told. One at a time per thread.
class SiteListening {
 public:
  explicit SiteListening(SiteListener& listener);
  ~SiteListening();
  SiteListening(const SiteListening&) = delete;
  SiteListening& operator=(const SiteListening&) = delete;
};

/// A tensor that stands for `tensor` in a stage: same memory, its gradient goes to `node` alone.
at::Tensor make_stand_in(const at::Tensor& tensor, const NodePtr& node);

/// End of the backward at a use site: hands the gradient to a sink. Runs as soon as the gradient is
/// complete, as torch's own accumulation does.
class SiteNode : public torch::autograd::Node {
 public:
  SiteNode(GradientSink& sink, int site)
      : Node(std::numeric_limits<std::uint64_t>::max()), sink_(sink), site_(site) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

  /// Index in graph::use_sites.
  int site() const { return site_; }

 private:
  GradientSink& sink_;
  int site_;
};

/// End of the backward at a received value: keeps the gradient as the backward made it.
class CaptureNode : public torch::autograd::Node {
 public:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

  /// Undefined where the backward did not reach the value.
  at::Tensor take() { return std::move(gradient_); }

 private:
  at::Tensor gradient_;
};

/// Stand-ins for the parameters of a recording, one per use site: each site's gradient goes to the
/// sink apart from the others'.
///
/// They live as long as the tensors of the recording and serve every microbatch, several at once.
class SiteTable {
 public:
  /// sink   must outlive the table and every backward through its stand-ins.
  SiteTable(const record::Recording& recording, GradientSink& sink);

  SiteTable(const SiteTable&) = delete;
  SiteTable& operator=(const SiteTable&) = delete;

  const std::vector<graph::UseSite>& sites() const { return sites_; }

  /// What `node` gets for `parameter`; the detached parameter where it is no use.
  at::Tensor tensor_for(graph::ValueId parameter, graph::NodeId node) const;

  ParameterBinding binding() const;

  /// As a SiteNode does it.
  void accept(int site, const at::Tensor& gradient) const { sink_.accept(site, gradient); }

 private:
  const record::Recording& recording_;
  GradientSink& sink_;
  std::vector<graph::UseSite> sites_;
  std::vector<at::Tensor> stand_ins_;  ///< By position in sites_.
  std::map<std::pair<graph::ValueId, graph::NodeId>, std::size_t> site_of_;
};

/// A function of a backward that threw.
class FailedFunction : public std::exception {
 public:
  FailedFunction(std::string name, std::uint64_t sequence, std::exception_ptr cause)
      : name_(std::move(name)), sequence_(sequence), cause_(std::move(cause)) {}

  const char* what() const noexcept override { return name_.c_str(); }

  /// As torch calls it: `AddmmBackward0`.
  const std::string& name() const { return name_; }

  /// The number that torch gave it when the forward made it, counted by thread.
  std::uint64_t sequence() const { return sequence_; }

  /// What it threw.
  const std::exception_ptr& cause() const { return cause_; }

 private:
  std::string name_;
  std::uint64_t sequence_;
  std::exception_ptr cause_;
};

/// Runs a backward by torch's engine, from `roots` with their gradients to wherever edges end; what
/// the forward saved is freed on the way.
///
/// Errors   FailedFunction. Costs nothing while all goes well.
/// Threads  as torch's: on the CPU all of it runs on the caller's.
void run_backward(const torch::autograd::edge_list& roots,
                  const torch::autograd::variable_list& gradients);

/// What becomes of what the forward saved.
enum class Saved : std::uint8_t { kFreed, kKept };

/// Runs of a backward what leads to `edges`, and returns the gradients that arrive there, undefined where none does;
/// the functions of the edges run only where others of them lie behind. Errors   FailedFunction.
torch::autograd::variable_list run_backward_to(const torch::autograd::edge_list& edges,
                                               const torch::autograd::edge_list& roots,
                                               const torch::autograd::variable_list& gradients,
                                               Saved saved);

}  // namespace trireme::program
