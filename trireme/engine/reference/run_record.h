#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trireme/engine/parameters/optimizers/optimizer.h"
#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/model.h"
#include "trireme/session.h"

namespace trireme::reference {

using Tensors = std::map<std::string, at::Tensor>;

/// Dtype, shape and a hash of all bits of a tensor, 128 bits long: where digests are equal, tensors
/// are.
using Digest = std::string;
using Digests = std::map<std::string, Digest>;

Digest digest_of(const at::Tensor& tensor);

/// What some steps of training leave behind. Takes next to no memory unless it keeps tensors.
struct RunRecord {
  std::vector<double> losses;      ///< By step.
  std::vector<Digests> gradients;  ///< By step; of parameters that had one.
  Digests weights;                 ///< After the last step.
  Digests buffers;                 ///< Likewise.
  std::vector<double> step_ms;     ///< By step; says nothing of what it left.
  // To say how far apart runs are: empty, or of all names.
  Tensors first_gradients;
  Tensors last_weights;
};

/// Whether type, shape and every bit are the same; strides do not count.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

/// |a - b| / |b|; infinite where the shapes differ.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

/// The gradient of a parameter that `store` owns, as it lies in its owner's slot.
at::Tensor owner_view(const parameters::ParameterStore& store,
                      const parameters::GradientBuffers& gradients, const std::string& name);

/// Views of the gradients of the parameters that `store` owns.
Tensors gradients_of(const parameters::ParameterStore& store,
                     const parameters::GradientBuffers& gradients,
                     const parameters::HasGradient& has_gradient);

enum class Keep : std::uint8_t { kDigests, kTensors };

/// Adds the gradients of the next step.
void take_gradients(const Tensors& gradients, Keep keep, RunRecord& record);

/// Fills in weights that `store` holds and buffers.
void take_state(const Workload& workload, const parameters::ParameterStore& store, Keep keep,
                RunRecord& record);

/// Compares everything that `reference` holds with `run`; what only `run` holds is a difference
/// too.
void compare(const RunRecord& run, const RunRecord& reference, Comparison& result);

}  // namespace trireme::reference
