#include "trireme/engine/parameters/optimizers/optimizer.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/error.h"
#include "trireme/kernels/norm/norm.h"
#include "trireme/kernels/optimizer/average.h"

namespace trireme::parameters {
namespace {

/// The parameter's part with its gradient.
FlatParameter with_gradient(const ParameterStore& store, const GradientBuffers& gradients,
                            const std::string& name, const Part& part) {
  FlatParameter parameter = flat_parameter(store, name, part);
  const SlotPlace place = store.owner(name);
  parameter.gradient = gradients.elements(
      place.bucket, store.slot(place).offset_elements + parameter.begin, parameter.value.numel());
  return parameter;
}

/// Sizes from the outermost dimension of the memory to the innermost.
std::vector<std::int64_t> memory_shape(const at::Tensor& value) {
  std::vector<std::int64_t> dims(value.dim()), shape;
  std::iota(dims.begin(), dims.end(), 0);
  std::ranges::stable_sort(dims, std::greater{}, [&](std::int64_t d) { return value.stride(d); });
  for (const std::int64_t d : dims) shape.push_back(value.size(d));
  return shape;
}

void block_squares(const at::Tensor& flat, std::span<double> sums) {
  const auto write = [&]<typename T>(const T* data) {
    kernels::block_sums_of_squares(data, flat.numel(), sums.data(), on_torch_threads);
  };
  flat.scalar_type() == at::kDouble ? write(flat.const_data_ptr<double>())
                                    : write(flat.const_data_ptr<float>());
}

/// Sums over the norm blocks of parameters, `each` of a block.
class BlockSums {
 public:
  explicit BlockSums(int each) : each_(each) {}

  void add(const std::string& name, std::int64_t num_elements) {
    const std::int64_t blocks =
        (num_elements + layout::kNormBlockElements - 1) / layout::kNormBlockElements;
    places_[name] = {static_cast<std::int64_t>(words_.size()), blocks};
    words_.resize(words_.size() + blocks * each_);
  }

  /// Of the blocks in a part of a parameter: [block][each], 0 before they are written.
  std::span<double> of(const FlatParameter& parameter) {
    const auto [first, num_blocks] = places_.at(parameter.name);
    const std::int64_t skipped = parameter.begin / layout::kNormBlockElements;
    const std::int64_t blocks =
        (parameter.value.numel() + layout::kNormBlockElements - 1) / layout::kNormBlockElements;
    return std::span(words_).subspan(first + skipped * each_, blocks * each_);
  }

  void unite(const Part& part) {
    static_assert(sizeof(double) == sizeof(std::uint64_t));
    if (!part.replica || words_.empty()) return;
    std::vector<std::uint64_t> bits(words_.size());
    std::memcpy(bits.data(), words_.data(), bits.size() * sizeof(double));
    part.unite(bits);
    std::memcpy(words_.data(), bits.data(), bits.size() * sizeof(double));
  }

  /// [each] of a whole parameter: those of its blocks folded left.
  std::vector<double> total(const std::string& name) const {
    const auto [first, num_blocks] = places_.at(name);
    std::vector<double> total(each_);
    for (std::int64_t i = 0; i < num_blocks * each_; ++i) total[i % each_] += words_[first + i];
    return total;
  }

 private:
  struct Place {
    std::int64_t first = 0;
    std::int64_t num_blocks = 0;
  };

  int each_;
  std::map<std::string, Place> places_;
  std::vector<double> words_;
};

}  // namespace

void Optimizer::begin_update(const FlatParameter&, const UpdateRule&, std::span<double>) {}

std::map<std::string, at::Tensor>& Optimizer::state_of(const FlatParameter& parameter) {
  auto& state = state_[parameter.name];
  if (!state.empty()) return state;
  for (const auto& [kind, kept] : kinds(parameter)) {
    state[kind] = at::zeros({kept.num_elements}, kept.dtype);
  }
  if (averages()) state[kAverage].copy_(parameter.value);
  return state;
}

std::map<std::string, Optimizer::Kept> Optimizer::kinds(const FlatParameter& parameter) const {
  auto kinds = own_kinds(parameter);
  if (averages()) kinds.emplace(kAverage, like(parameter.value));
  return kinds;
}

void Optimizer::average(const FlatParameter& parameter) {
  if (!averages()) return;
  at::Tensor& average = state_of(parameter).at(kAverage);
  const auto move = [&]<typename T>(const T* value, T* moved) {
    kernels::move_average(average_decay_, value, moved, parameter.value.numel(), on_torch_threads);
  };
  parameter.value.scalar_type() == at::kDouble
      ? move(parameter.value.const_data_ptr<double>(), average.mutable_data_ptr<double>())
      : move(parameter.value.const_data_ptr<float>(), average.mutable_data_ptr<float>());
}

void Optimizer::exchange_average(const FlatParameter& parameter) {
  const auto state = state_.find(parameter.name);
  if (!averages() || state == state_.end() || parameter.value.numel() == 0) return;
  const auto bytes = [](const at::Tensor& tensor) {
    return static_cast<std::byte*>(tensor.mutable_data_ptr());
  };
  std::byte* value = bytes(parameter.value);
  std::swap_ranges(value, value + parameter.value.nbytes(), bytes(state->second.at(kAverage)));
}

void Optimizer::restore(const FlatParameter& parameter, std::map<std::string, at::Tensor> state) {
  const auto expected = kinds(parameter);
  bool fits = state.size() == expected.size();
  for (const auto& [kind, kept] : expected) {
    const auto found = state.find(kind);
    fits = fits && found != state.end() && found->second.numel() == kept.num_elements &&
           found->second.scalar_type() == kept.dtype;
  }
  if (!fits) {
    throw Error(ErrorKind::kCorruptData,
                "the checkpoint's optimizer state of '" + parameter.name +
                    "' is not what this optimizer keeps; resume from another checkpoint");
  }
  state_[parameter.name] = std::move(state);
}

void check_parameters(const Optimizer& optimizer, const ParameterStore& store, const Part& part) {
  if (part.replica && !optimizer.can_shard()) {
    throw Error(ErrorKind::kInvalidArgument,
                "the plan has replicas share the optimizer's state, which this optimizer cannot: "
                "take sgd, adamw, lamb, lars or novograd, or a plan without --shard-state");
  }
  for (const std::string& name : store.names()) {
    if (store.value(name).scalar_type() != at::kDouble || optimizer.takes_f64()) continue;
    throw Error(ErrorKind::kInvalidArgument, "this optimizer updates f32, parameter '" + name +
                                                 "' is f64; take adamw or sgd for it");
  }
}

layout::Shard part_of(const layout::Bucket& bucket, const Part& part) {
  return part.replica ? bucket.shards[*part.replica] : layout::Shard{0, 0, bucket.num_elements};
}

FlatParameter flat_parameter(const ParameterStore& store, const std::string& name,
                             const Part& part) {
  const SlotPlace place = store.owner(name);
  const layout::Slot& slot = store.slot(place);
  const layout::Shard shard = part_of(store.map().buckets[place.bucket], part);
  const std::int64_t begin =
      std::clamp<std::int64_t>(shard.begin_elements - slot.offset_elements, 0, slot.num_elements);
  const std::int64_t end =
      std::clamp<std::int64_t>(shard.end_elements - slot.offset_elements, 0, slot.num_elements);
  return {name,
          store.elements(place.bucket, slot.offset_elements + begin, end - begin),
          {},
          memory_shape(store.value(name)),
          begin};
}

SquareNorms square_norms(const ParameterStore& store, const GradientBuffers& gradients,
                         const HasGradient& has_gradient, const Part& part) {
  BlockSums sums(1);
  for (const std::string& name : store.names()) {
    if (!has_gradient(name)) continue;
    sums.add(name, store.slot(store.owner(name)).num_elements);
    const FlatParameter parameter = with_gradient(store, gradients, name, part);
    block_squares(parameter.gradient, sums.of(parameter));
  }
  sums.unite(part);
  SquareNorms result;
  for (const std::string& name : store.names()) {
    if (has_gradient(name)) result[name] = sums.total(name).front();
  }
  return result;
}

double global_norm(const SquareNorms& square_norms) {
  double sum = 0;
  for (const auto& [name, square] : square_norms) sum += square;
  return std::sqrt(sum);
}

void clip(GradientBuffers& gradients, double norm, double max_norm) {
  if (!(max_norm > 0)) {
    throw Error(ErrorKind::kInvalidArgument,
                "gradients are clipped to a positive norm, got " + std::to_string(max_norm));
  }
  const at::NoGradGuard no_grad;
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return;
  for (const at::Tensor& flat : gradients.all()) {
    if (flat.defined()) flat.mul_(factor);
  }
}

namespace {

class Own : public Optimizer {
 public:
  bool takes_f64() const override { return true; }
  bool can_shard() const override { return false; }
  void update(const FlatParameter&, const UpdateRule&, std::span<const double>) override {}
  std::map<std::string, Kept> own_kinds(const FlatParameter&) const override { return {}; }
};

/// One union of words for all parameters.
void update_parts(Optimizer& optimizer, const std::vector<FlatParameter>& parameters,
                  const RuleOf& rule_of, const ParameterStore& store, const Part& part) {
  const int each = optimizer.sums_per_block();
  BlockSums sums(each);
  for (const FlatParameter& parameter : parameters) {
    if (each == 0) break;
    sums.add(parameter.name, store.slot(store.owner(parameter.name)).num_elements);
    if (parameter.value.numel() == 0) continue;
    optimizer.begin_update(parameter, rule_of(parameter.name), sums.of(parameter));
  }
  sums.unite(part);
  for (const FlatParameter& parameter : parameters) {
    if (parameter.value.numel() == 0) continue;
    const std::vector<double> total =
        each == 0 ? std::vector<double>() : sums.total(parameter.name);
    optimizer.update(parameter, rule_of(parameter.name), total);
    optimizer.average(parameter);
  }
}

}  // namespace

void exchange_averages(Optimizer& optimizer, const ParameterStore& store, const Part& part) {
  for (const std::string& name : store.names()) {
    optimizer.exchange_average(flat_parameter(store, name, part));
  }
}

std::unique_ptr<Optimizer> make_own() { return std::make_unique<Own>(); }

/// What its norms have read last is still in cache when it is updated.
void update(Optimizer& optimizer, const FlatParameter& parameter, const UpdateRule& rule) {
  const int each = optimizer.sums_per_block();
  if (each == 0) return optimizer.update(parameter, rule, {});
  BlockSums sums(each);
  sums.add(parameter.name, parameter.value.numel());
  optimizer.begin_update(parameter, rule, sums.of(parameter));
  optimizer.update(parameter, rule, sums.total(parameter.name));
}

void apply(Optimizer& optimizer, const ParameterStore& store, const GradientBuffers& gradients,
           const HasGradient& has_gradient, const RuleOf& rule_of, const Part& part) {
  const at::NoGradGuard no_grad;
  std::vector<FlatParameter> parameters;
  for (const std::string& name : store.names()) {
    if (!has_gradient(name)) continue;
    parameters.push_back(with_gradient(store, gradients, name, part));
  }
  if (part.replica) return update_parts(optimizer, parameters, rule_of, store, part);
  for (const FlatParameter& parameter : parameters) {
    update(optimizer, parameter, rule_of(parameter.name));
    optimizer.average(parameter);
  }
}

}  // namespace trireme::parameters
