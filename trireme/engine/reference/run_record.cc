#include "trireme/engine/reference/run_record.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace trireme::reference {
namespace {

/// Fills the comparison in, in the order in which a run makes things.
class Comparer {
 public:
  explicit Comparer(Comparison& result) : result_(result) {}

  void note(bool same, const std::string& what) {
    if (same) return;
    result_.is_bitwise = false;
    if (result_.first_difference.empty()) result_.first_difference = what;
  }

  void note_lack(const std::string& what) {
    result_.has_all = false;
    note(false, what);
  }

  void digests(const Digests& a, const Digests& b, const std::string& what) {
    for (const auto& [name, digest] : b) {
      const auto mine = a.find(name);
      if (mine == a.end()) {
        note_lack(what + " '" + name + "' is missing");
      } else {
        note(mine->second == digest, what + " '" + name + "'");
      }
    }
    for (const auto& [name, digest] : a) {
      if (!b.contains(name)) note_lack(what + " '" + name + "' should not be");
    }
  }

 private:
  Comparison& result_;
};

double worst_difference(const Tensors& a, const Tensors& b) {
  double worst = 0;
  for (const auto& [name, tensor] : b) {
    const auto mine = a.find(name);
    if (mine != a.end()) worst = std::max(worst, relative_difference(mine->second, tensor));
  }
  return worst;
}

}  // namespace

Digest digest_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  const XXH128_hash_t hash = XXH3_128bits(dense.const_data_ptr(), dense.nbytes());
  return fmt::format("{} [{}] {:016x}{:016x}", c10::toString(dense.scalar_type()),
                     fmt::join(dense.sizes(), ", "), hash.high64, hash.low64);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         (x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0);
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  const double difference = at::sub(a.to(at::kDouble), b.to(at::kDouble)).norm().item<double>();
  const double norm = b.to(at::kDouble).norm().item<double>();
  return difference == 0 ? 0 : difference / std::max(norm, 1e-30);
}

at::Tensor owner_view(const parameters::ParameterStore& store,
                      const parameters::GradientBuffers& gradients, const std::string& name) {
  const parameters::SlotPlace place = store.owner(name);
  return parameters::slot_view(gradients.flat(place.bucket), store.slot(place), store.value(name));
}

Tensors gradients_of(const parameters::ParameterStore& store,
                     const parameters::GradientBuffers& gradients,
                     const parameters::HasGradient& has_gradient) {
  Tensors result;
  for (const std::string& name : store.names()) {
    if (has_gradient(name)) result[name] = owner_view(store, gradients, name);
  }
  return result;
}

void take_gradients(const Tensors& gradients, Keep keep, RunRecord& record) {
  record.gradients.emplace_back();
  for (const auto& [name, tensor] : gradients) {
    record.gradients.back()[name] = digest_of(tensor);
    if (keep == Keep::kTensors && record.gradients.size() == 1) {
      record.first_gradients[name] = tensor.clone();
    }
  }
}

void take_state(const Workload& workload, const parameters::ParameterStore& store, Keep keep,
                RunRecord& record) {
  for (const NamedTensor& item : workload.model.parameters) {
    if (!store.has_value(item.name)) continue;
    record.weights[item.name] = digest_of(store.value(item.name));
    if (keep == Keep::kTensors) record.last_weights[item.name] = store.value(item.name).clone();
  }
  for (const NamedTensor& buffer : workload.model.buffers) {
    if (buffer.tensor.defined()) record.buffers[buffer.name] = digest_of(buffer.tensor);
  }
}

void compare(const RunRecord& run, const RunRecord& reference, Comparison& result) {
  Comparer comparer(result);
  for (std::size_t step = 0; step < run.losses.size(); ++step) {
    const double a = run.losses[step], b = reference.losses[step];
    const std::string at = " of step " + std::to_string(step);
    result.is_finite = result.is_finite && std::isfinite(b);
    comparer.note(std::memcmp(&a, &b, sizeof a) == 0, "loss" + at);
    if (a != b) {
      result.worst_loss =
          std::max(result.worst_loss, std::abs(a - b) / std::max(std::abs(b), 1e-30));
    }
    comparer.digests(run.gradients[step], reference.gradients[step], "gradient" + at + " of");
  }
  comparer.digests(run.weights, reference.weights, "weight");
  comparer.digests(run.buffers, reference.buffers, "buffer");
  result.worst_gradient = worst_difference(run.first_gradients, reference.first_gradients);
  result.worst_weight = worst_difference(run.last_weights, reference.last_weights);
}

}  // namespace trireme::reference

namespace trireme {

bool Comparison::passes() const {
  if (must_be_bitwise) return is_bitwise;
  // Written so that NaN fails.
  return has_all && worst_loss <= 1e-5 && worst_gradient <= gradient_limit &&
         worst_weight <= weight_limit;
}

}  // namespace trireme
