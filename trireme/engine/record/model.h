#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace trireme {

/// One microbatch: tensors by field name, and the declared step scalars as 0-dim tensors.
class Batch {
 public:
  /// The tensor called `name`. Throws kInvalidArgument, listing the names there are.
  const at::Tensor& operator[](const std::string& name) const;

  bool has(const std::string& name) const { return tensors_.contains(name); }
  void set(const std::string& name, at::Tensor tensor) { tensors_[name] = std::move(tensor); }
  const std::map<std::string, at::Tensor>& tensors() const { return tensors_; }

 private:
  std::map<std::string, at::Tensor> tensors_;
};

/// One named loss of a microbatch. Make it with `mean_loss`, `sum_loss` or `metric`.
struct Loss {
  std::string name;
  at::Tensor value;   ///< 0-dim floating: a sum if `weight` is defined, else a mean over samples.
  at::Tensor weight;  ///< 0-dim, of any real dtype; depends on no parameter, nor on random numbers.
  double coefficient = 1;  ///< Factor in the step loss; 0 makes it a metric.
};

/// What `forward` returns. Step loss = sum over losses of coefficient x total sum / total weight.
using Losses = std::vector<Loss>;

/// A mean over the samples of the microbatch; each sample weighs 1.
Loss mean_loss(at::Tensor mean, std::string name = "loss");

/// A sum and what it is to be divided by (tokens, boxes, ...) once both are totals of the step; the
/// weight may be an integer tensor, as a count is.
Loss sum_loss(at::Tensor sum, at::Tensor weight, std::string name = "loss");

/// Reported beside the loss, without a gradient.
Loss metric(Loss loss, std::string name);

/// A number that changes from step to step (a temperature, a warm-up factor). `forward` reads it
/// as the 0-dim f32 tensor `batch["name"]`: a plain number would be baked into the recording.
struct StepScalar {
  std::string name;
  std::function<double(std::int64_t step)> at;
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// A model with its type forgotten: the tensors it registers and how to call it.
///
/// `make_model` (module.h) makes one from a torch::nn::Module; a bare callable may fill it in by
/// hand. A tensor that is registered under two names stands here twice. Caller-synchronised.
struct Model {
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  std::function<Losses(const Batch&)> forward;
  std::function<void(bool training)> set_training = [](bool) {};
  std::vector<StepScalar> step_scalars;
  std::map<std::string, int> batch_dims;  ///< Dimension that grows with the batch; 0 if not named.
  std::shared_ptr<void> owner;            ///< Keeps alive what the functions refer to.
};

/// Adds the step scalars of `model`, as they are at `step`, to `batch`.
void set_step_scalars(Batch& batch, const Model& model, std::int64_t step);

}  // namespace trireme
