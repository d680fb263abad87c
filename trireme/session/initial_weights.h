#pragma once

#include <functional>
#include <string>

#include "trireme/model.h"
#include "trireme/session.h"

namespace trireme::session {

/// Puts the tensors of a safetensors file into the model's parameters and buffers of the same name, in place, after
/// `options.renamed`. Numbers are converted to the model's dtypes.
///
/// Returns  what was taken and what was not, for people.
/// Errors   kInvalidArgument, naming the first, where the file lacks one of the model's, has another beside them, or one
///          of another shape, unless `options.partial`; those of reading the file.
std::string load_weights(const Model& model, const InitialWeights& options);

/// Makes the workload with its weights from there; `say` hears what was taken. `make` itself where there is no file.
MakeWorkload with_weights(const MakeWorkload& make, const InitialWeights& options,
                          const std::function<void(const std::string&)>& say);

}  // namespace trireme::session
