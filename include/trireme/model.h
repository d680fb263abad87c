#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/data.h"

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

/// One named loss of a microbatch, or an output. Make it with `mean_loss`, `sum_loss`, `metric` or `output`.
struct Loss {
  std::string name;
  at::Tensor value;   ///< 0-dim floating: a sum if `weight` is defined, else a mean over samples.
  at::Tensor weight;  ///< 0-dim, of any real dtype; depends on no parameter, nor on random numbers.
  double coefficient = 1;  ///< Factor in the step loss; 0 makes it a metric.
  bool is_output = false;  ///< No loss: `value` is [samples, ...], of any dtype.
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

/// What forward makes of each sample, for the metrics of an evaluation (Workload::metrics); training leaves it out.
///
/// values   [samples, ...]: made by an operator, or a field of the batch as it is.
/// Cost     of an evaluation by ranks: a message to the first one for each microbatch, and memory where they are made for
///          those of at most 256 microbatches.
Loss output(at::Tensor values, std::string name);

/// Numbers about all samples of an evaluation together, which no sum of losses gives: areas under curves, average
/// precision, word error rates. Kept on the first rank, and called from the thread that evaluates. What it throws ends the
/// evaluation on all ranks.
class Metric {
 public:
  virtual ~Metric() = default;

  /// The outputs of the next samples, [samples, ...] each, on the CPU. Samples come in the order of the evaluation data, each
  /// once, whatever the layout is.
  virtual void add(const Batch& outputs) = 0;

  /// By name; reported as metrics of the evaluation are, so a run's best checkpoint or end may go by one. Finite.
  virtual std::vector<std::pair<std::string, double>> results() = 0;
};

/// One loss over a step or an evaluation.
struct LossTotal {
  std::string name;
  double sum = 0;
  double weight = 0;
  double coefficient = 1;
  double mean() const { return sum / weight; }
};

struct StepLosses {
  std::vector<LossTotal> losses;

  /// Sum of coefficient x mean.
  double total() const;
};

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
/// `make_model` makes one from modules; a bare callable may fill it in by hand. A tensor that is
/// registered under two names stands here twice. Caller-synchronised.
struct Model {
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  std::function<Losses(const Batch&)> forward;
  std::function<void(bool training)> set_training = [](bool) {};
  /// Tells forward to do without control flow that depends on data (as under torch.compile). Where a
  /// recording meets some, it is taken again after set_traced(true), which holds for all later calls.
  /// Empty: there is no such thing.
  /// Returns what was set before.
  std::function<bool(bool traced)> set_traced;
  /// Gives a parameter the value that it begins with, in place. Called once for each that a process trains or keeps, before
  /// anything is computed with it; until then it takes no memory. Empty: parameters have their values. Set by
  /// SessionOptions::deferred_init.
  std::function<void(const at::Tensor& parameter)> fill;
  /// Forward leaves something behind that the program needs on every rank: each records by itself, where else the first
  /// one's graph is taken by all.
  bool recorded_by_all = false;
  std::vector<StepScalar> step_scalars;
  std::map<std::string, int> batch_dims;  ///< Dimension that grows with the batch; 0 if not named.
  std::shared_ptr<void> owner;            ///< Keeps alive what the functions refer to.
};

/// A module of a model that has several; its tensors are called `name.weight` and the like.
struct NamedModule {
  std::string name;
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  std::function<void(bool training)> set_training;
  std::shared_ptr<void> owner;

  /// module   a torch::nn::Module, or anything with its named_parameters(), named_buffers(), train().
  template <typename Module>
  NamedModule(std::string module_name, std::shared_ptr<Module> module)
      : name(std::move(module_name)) {
    for (const auto& item : module->named_parameters()) {
      parameters.push_back({item.key(), item.value()});
    }
    for (const auto& item : module->named_buffers()) buffers.push_back({item.key(), item.value()});
    set_training = [raw = module.get()](bool training) { raw->train(training); };
    owner = std::move(module);
  }
};

/// A model of several modules; `forward`, which is called with each batch, says how they are used.
///
/// forward   returns Losses, a Loss, or a 0-dim tensor (then the mean loss `loss`).
template <typename Forward>
Model make_model(std::vector<NamedModule> modules, Forward forward) {
  Model model;
  for (const NamedModule& module : modules) {
    const std::string prefix = module.name.empty() ? "" : module.name + ".";
    for (const auto& [name, tensor] : module.parameters) {
      model.parameters.push_back({prefix + name, tensor});
    }
    for (const auto& [name, tensor] : module.buffers) {
      model.buffers.push_back({prefix + name, tensor});
    }
  }
  model.forward = [forward = std::move(forward)](const Batch& batch) mutable -> Losses {
    using Result = std::decay_t<decltype(forward(batch))>;
    if constexpr (std::is_same_v<Result, Losses>) {
      return forward(batch);
    } else if constexpr (std::is_same_v<Result, Loss>) {
      return {forward(batch)};
    } else {
      return {mean_loss(forward(batch))};
    }
  };
  const auto shared = std::make_shared<std::vector<NamedModule>>(std::move(modules));
  model.set_training = [raw = shared.get()](bool training) {
    for (const NamedModule& module : *raw) module.set_training(training);
  };
  model.owner = shared;
  return model;
}

/// The same of one module, whose tensors keep their names.
template <typename Module, typename Forward>
Model make_model(std::shared_ptr<Module> module, Forward forward) {
  return make_model(std::vector<NamedModule>{{"", std::move(module)}}, std::move(forward));
}

/// A module whose own `forward` takes a Batch.
template <typename Module>
Model make_model(std::shared_ptr<Module> module) {
  Module* raw = module.get();
  return make_model(std::move(module), [raw](const Batch& batch) { return raw->forward(batch); });
}

using TensorList = std::vector<at::Tensor>;

/// A registered callable that runs eagerly inside: one node of the graph, never cut.
struct OpaqueFunction {
  std::string name;
  std::function<TensorList(const TensorList&)> call;
  std::vector<NamedTensor> parameters;  ///< Tensors that it uses beyond its inputs.
  std::vector<NamedTensor> buffers;     ///< Its state; written at once, in microbatch order.
};

/// Marks code that cannot be recorded (its control flow depends on data) as one opaque node.
///
/// Calling it runs the function; under recording, its operators are not looked at. Its inputs and
/// outputs are dense tensors; an output must not share memory with an input (kInvalidArgument).
/// Random operators inside draw from the node's stream.
class Opaque {
 public:
  explicit Opaque(std::shared_ptr<const OpaqueFunction> function);
  TensorList operator()(const TensorList& inputs) const;

 private:
  std::shared_ptr<const OpaqueFunction> function_;
};

/// An opaque node out of a plain function without parameters. `name` is unique in the model.
Opaque opaque(std::string name, std::function<TensorList(const TensorList&)> function);

/// An opaque node out of a module: anything with named_parameters(), named_buffers() and
/// `TensorList forward(const TensorList&)`, held by a std::shared_ptr (or a module holder's ptr()).
template <typename Module>
Opaque opaque(std::string name, std::shared_ptr<Module> module) {
  auto function = std::make_shared<OpaqueFunction>();
  function->name = std::move(name);
  for (const auto& item : module->named_parameters()) {
    function->parameters.push_back({item.key(), item.value()});
  }
  for (const auto& item : module->named_buffers()) {
    function->buffers.push_back({item.key(), item.value()});
  }
  function->call = [module = std::move(module)](const TensorList& inputs) {
    return module->forward(inputs);
  };
  return Opaque(std::move(function));
}

/// What a program trains: a model and its data.
struct Workload {
  Model model;
  std::shared_ptr<const data::Source> training;    ///< Its fields are those of the model's batch.
  std::shared_ptr<const data::Source> evaluation;  ///< May be null.

  /// Makes the metrics of an evaluation, anew for each; may be null.
  std::function<std::vector<std::unique_ptr<Metric>>()> metrics = nullptr;

  /// A few things that the model does with the weights that it has, for people; may be null. Called
  /// on the first rank when training has ended, with all weights in the model, in eval mode.
  std::function<std::string()> examples = nullptr;
};

/// In what forwards and backwards compute.
enum class Precision : std::uint8_t {
  kF32,   ///< In what the model is written in.
  kBf16,  ///< Matrix products, convolutions and the like in bf16, as torch's autocast has it.
  kF16,   ///< In f16; wants loss scaling (TrainingOptions::loss_scale).
};

/// The model with its forward under autocast. Parameters stay as they are (f32: master weights), and so do their
/// gradients' sums, the optimizer's state and updates; gradients of products are made in the precision and then widened.
Model with_precision(Model model, Precision precision);

/// For which batch sizes a recording is to hold.
enum class BatchSizes : std::uint8_t {
  kAny,           ///< Any.
  kExact,         ///< The microbatch size alone: code may differ with the size as it likes.
  kAnyElseExact,  ///< The microbatch size alone only where the recordings at several sizes differ
                  ///< by the size and by nothing else, or forward fails at another one.
};

/// Makes a workload; called under a fixed state of torch's generator, so the same each time.
using MakeWorkload = std::function<Workload()>;

/// The workload, its model with that precision.
MakeWorkload with_precision(const MakeWorkload& make, Precision precision);

/// Samples held in tensors, each [num_samples, ...]; shares their memory where they are dense.
///
/// Errors   kInvalidArgument where the numbers of samples differ.
std::shared_ptr<const data::Source> tensor_source(
    const std::vector<std::pair<std::string, at::Tensor>>& fields);

}  // namespace trireme
