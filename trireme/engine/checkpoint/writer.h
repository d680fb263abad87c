#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "trireme/engine/checkpoint/index.h"

namespace trireme::checkpoint {

/// A whole tensor of the training state, as its stage has it.
struct Item {
  std::string key;
  at::Tensor tensor;  ///< On CPU, any strides.
};

/// Writes one writer's share of `items` into `folder` / `name`, a safetensors file: part `part` of
/// `parts` (split.h). Whoever has the same items calls it with another part. Syncs the file.
///
/// Returns  what it wrote; empty, and no file, where the share is empty.
/// Errors   those of safetensors::write.
/// Memory   dense copies of those of its tensors that are not.
Contents write_share(const std::filesystem::path& folder, const std::string& name,
                     const std::vector<Item>& items, int part, int parts);

}  // namespace trireme::checkpoint
