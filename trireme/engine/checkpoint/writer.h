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

/// Which part of a list a writer writes.
struct Share {
  int part = 0;
  int parts = 1;
};

/// Writes one writer's share of `items` (split.h) as a safetensors file, and syncs it. Whoever has
/// the same items calls it with another part and file.
///
/// Returns  what it wrote; empty, and no file, where the share is empty.
/// Errors   those of safetensors::write.
/// Memory   dense copies of those of its tensors that are not.
Contents write_share(const std::filesystem::path& path, const std::vector<Item>& items,
                     const Share& share);

}  // namespace trireme::checkpoint
