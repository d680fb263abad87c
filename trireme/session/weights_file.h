#pragma once

#include <string>

#include "trireme/engine/train/training_state.h"
#include "trireme/model.h"

namespace trireme::session {

/// Writes tensors as a safetensors file, by way of `path` + `.partial`. Errors of
/// safetensors::write.
void save_weights(const train::Tensors& weights, const std::string& path);

/// The registered parameters and buffers, by name. Shares them.
train::Tensors state_of(const Model& model);

}  // namespace trireme::session
