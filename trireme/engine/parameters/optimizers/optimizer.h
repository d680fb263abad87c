#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/kernels/optimizer/adafactor.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/lamb.h"
#include "trireme/kernels/optimizer/lars.h"
#include "trireme/kernels/optimizer/novograd.h"
#include "trireme/kernels/optimizer/sgd.h"

namespace trireme::parameters {

/// One parameter in an update: flat views of its owner's slot, in memory order, f32 or f64. Or whole norm blocks of it,
/// where replicas share the update.
struct FlatParameter {
  std::string name;
  at::Tensor value;
  at::Tensor gradient;
  std::vector<std::int64_t> shape;  ///< Of the whole memory: the last dimension is the innermost.
  std::int64_t begin = 0;           ///< First element of the views in the parameter.
};

/// Which part of the parameters that are owned here a process updates, and keeps the optimizer's state of.
struct Part {
  /// Of a plan with sharded state: the replica, whose shards they are. Not set: all.
  std::optional<int> replica = {};
  /// Brings words together that one replica has and the others have as 0; for shards.
  std::function<void(std::span<std::uint64_t> words)> unite = {};
};

/// How a parameter is updated in a step.
struct UpdateRule {
  double learning_rate = 0;
  /// Not set: the optimizer's, which LAMB, LARS and NovoGrad have for matrices alone.
  std::optional<double> weight_decay = std::nullopt;
};

/// Updates parameters in place. What happens to one depends on nothing but its own elements, not on
/// how parameters are laid out; SGD and AdamW go element by element, LAMB, LARS and NovoGrad by norms of
/// the whole parameter too, which come from its norm blocks. Caller-synchronised.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Whether parameters may be f64 as well as f32; `check_parameters` looks.
  virtual bool takes_f64() const { return false; }

  /// Whether replicas may share the state of a parameter.
  virtual bool can_shard() const { return true; }

  /// Sums that an update needs of the whole parameter: so many of each of its norm blocks.
  virtual int sums_per_block() const { return 0; }

  /// The first half of an update, where there are such sums.
  ///
  /// sums   of the blocks in `parameter`: [block][sums_per_block], written.
  virtual void begin_update(const FlatParameter& parameter, const UpdateRule& rule,
                            std::span<double> sums);

  /// sums   of the whole parameter: [sums_per_block], those of its blocks folded left.
  virtual void update(const FlatParameter& parameter, const UpdateRule& rule,
                      std::span<const double> sums) = 0;

  /// State by parameter and kind (`exp_avg`, ...), flat; what a checkpoint saves.
  using State = std::map<std::string, std::map<std::string, at::Tensor>>;
  const State& state() const { return state_; }

  /// Puts back what `state` had for a parameter.
  ///
  /// Errors   kCorruptData where that is not the state that this optimizer keeps.
  void restore(const FlatParameter& parameter, std::map<std::string, at::Tensor> state);

  /// What is kept of a parameter, by kind: as many elements of a dtype.
  struct Kept {
    std::int64_t num_elements;
    at::ScalarType dtype;
    bool is_by_element;  ///< One for each of the parameter's own.
  };
  std::map<std::string, Kept> kinds(const FlatParameter& parameter) const;

  /// Keeps an exponential moving average of values, too, of the kind kAverage: from what a value is before its first
  /// update. 0: none.
  void set_average(double decay) { average_decay_ = decay; }
  static constexpr const char* kAverage = "average";

  /// After an update of the parameter.
  void average(const FlatParameter& parameter);

  /// The value and its average change places; nothing where there is none, as before the first update.
  void exchange_average(const FlatParameter& parameter);

 protected:
  bool averages() const { return average_decay_ > 0; }

  /// What the optimizer itself keeps.
  virtual std::map<std::string, Kept> own_kinds(const FlatParameter& parameter) const = 0;

  static Kept like(const at::Tensor& value) { return {value.numel(), value.scalar_type(), true}; }
  static Kept count() { return {1, at::kLong, false}; }
  static Kept number() { return {1, at::kDouble, false}; }

  /// The parameter's state, zeros before its first update; made then, before the value changes.
  std::map<std::string, at::Tensor>& state_of(const FlatParameter& parameter);

 private:
  State state_;
  double average_decay_ = 0;
};

/// kernels::SgdOptions; the learning rate comes with each update.
std::unique_ptr<Optimizer> make_sgd(const kernels::SgdOptions& options);

/// kernels::AdamwOptions; the learning rate comes with each update.
std::unique_ptr<Optimizer> make_adamw(const kernels::AdamwOptions& options);

/// kernels::LambOptions; the learning rate comes with each update. f32 alone. Vectors (biases,
/// norms) have no weight decay.
std::unique_ptr<Optimizer> make_lamb(const kernels::LambOptions& options);

/// kernels::LarsOptions, likewise. Vectors have no weight decay and the trust ratio 1.
std::unique_ptr<Optimizer> make_lars(const kernels::LarsOptions& options);

/// kernels::NovogradOptions, likewise. Vectors have no weight decay.
std::unique_ptr<Optimizer> make_novograd(const kernels::NovogradOptions& options);

/// kernels::AdafactorOptions; the learning rate comes with each update, in place of the relative
/// one. f32 alone. A parameter is one matrix: the outermost dimension of its memory by all others.
/// (torch.optim takes the last two dimensions, which saves nothing for kernels of convolutions.)
std::unique_ptr<Optimizer> make_adafactor(const kernels::AdafactorOptions& options);

/// Updates nothing and keeps nothing: somebody else does, before `apply`.
std::unique_ptr<Optimizer> make_own();

/// kInvalidArgument, naming the first parameter that the optimizer cannot update, or where it cannot update parts.
void check_parameters(const Optimizer& optimizer, const ParameterStore& store,
                      const Part& part = {});

/// A parameter of the store as its owner updates it, as far as it is in `part`: perhaps no element. `gradient` is
/// undefined.
FlatParameter flat_parameter(const ParameterStore& store, const std::string& name,
                             const Part& part = {});

/// Elements [begin, end) of an owner's bucket that are in `part`.
layout::Shard part_of(const layout::Bucket& bucket, const Part& part);

/// Which parameters got a gradient in the step; others keep value and state, as in torch.
using HasGradient = std::function<bool(const std::string& parameter)>;

/// Sum of squares of each parameter's gradient by the contract: f64 sums over norm blocks, folded
/// left. Parameters without a gradient have none. Cost one pass over the gradients.
///
/// part   whose gradients are there; the result is of whole parameters.
using SquareNorms = std::map<std::string, double>;
SquareNorms square_norms(const ParameterStore& store, const GradientBuffers& gradients,
                         const HasGradient& has_gradient, const Part& part = {});

/// The norm of all: folded left in byte order of the parameters' names.
double global_norm(const SquareNorms& square_norms);

/// Multiplies all gradients by max_norm / (norm + 1e-6) unless that is 1 or more, as torch does: a
/// norm that is NaN makes all gradients NaN.
/// kInvalidArgument where max_norm is not positive.
void clip(GradientBuffers& gradients, double norm, double max_norm);

/// Of this step, by the parameter's name.
using RuleOf = std::function<UpdateRule(const std::string& parameter)>;

/// Of all parameters of the store that are in `part`, value and average change places: twice, and all is as it was.
void exchange_averages(Optimizer& optimizer, const ParameterStore& store, const Part& part = {});

/// Updates one parameter that is here as a whole.
void update(Optimizer& optimizer, const FlatParameter& parameter, const UpdateRule& rule);

/// Updates every parameter that got a gradient, as far as it is in `part`.
void apply(Optimizer& optimizer, const ParameterStore& store, const GradientBuffers& gradients,
           const HasGradient& has_gradient, const RuleOf& rule_of, const Part& part = {});

}  // namespace trireme::parameters
