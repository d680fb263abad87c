#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/engine/checkpoint/checkpoint_index.h"
#include "trireme/engine/checkpoint/tensor_file.h"

namespace trireme::checkpoint {

/// A tensor as far as dividing it goes.
struct Extent {
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
};

/// Rows [begin, end) of the tensor at a position of a list.
struct Piece {
  int tensor = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Piece&) const = default;
};

/// Divides a list of tensors among `parts` writers: each has a contiguous run of the rows of all,
/// and at most one row more than its equal share of the bytes. Every row is in one part; a tensor
/// without rows is in the first. kInvalidArgument where there is no part.
std::vector<std::vector<Piece>> split(std::span<const Extent> tensors, int parts);

/// Where rows stand in a tensor of this shape.
struct RowsOf {
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;
};

/// A tensor of the training state, as its stage has it: whole, or rows of it that nobody else has.
struct KeyedTensor {
  std::string key;
  at::Tensor tensor;                   ///< On CPU, any strides.
  std::optional<RowsOf> rows_of = {};  ///< Of what, where it is not whole.
  bool is_own = false;                 ///< Nobody else has it: no share of others.
};

/// Which part of a list a writer writes.
struct Share {
  int part = 0;
  int parts = 1;
};

/// One writer's share of `items` (`split`), and its own. Whoever has the same items takes another part.
class ShareFile {
 public:
  /// name     of the file.
  /// Memory   dense copies of those of its tensors that are not.
  ShareFile(std::string name, const std::vector<KeyedTensor>& items, const Share& share);

  const std::string& name() const { return name_; }

  /// Holds copies from now on: who owns the items may change them (TensorFile::copy).
  void copy() { file_.copy(); }

  /// Writes it as a safetensors file into the folder, and syncs it; once.
  ///
  /// Returns  what it wrote; empty, and no file, where the share is empty.
  /// Errors   those of safetensors::write.
  Contents write(const std::filesystem::path& folder);

 private:
  void add(const KeyedTensor& item, const Piece& piece);

  std::string name_;
  Contents contents_;
  TensorFile file_;
};

}  // namespace trireme::checkpoint
