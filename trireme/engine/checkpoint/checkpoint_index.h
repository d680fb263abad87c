#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trireme/base/document.h"
#include "trireme/dtype.h"

namespace trireme::checkpoint {

/// A file of the checkpoint's folder.
struct File {
  std::string name;
  std::int64_t bytes = 0;
  std::string sha256;
  bool operator==(const File&) const = default;
};

/// Rows [begin, end) of a tensor, along its first dimension; [0, 1) of one without dimensions.
struct Slice {
  std::string file;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Slice&) const = default;
};

/// A tensor of the training state: `parameters/NAME`, `buffers/NAME`, `optimizer/KIND/NAME` or `training/NAME`.
struct TensorEntry {
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;
  std::vector<Slice> slices;  ///< Ascending; together all rows.
  bool operator==(const TensorEntry&) const = default;
};

/// Files, and what is in them.
struct Contents {
  std::vector<File> files;
  std::map<std::string, TensorEntry> tensors;
  std::string not_finite;  ///< The first trained tensor with a NaN or infinite number; empty: none.
  bool operator==(const Contents&) const = default;

  /// Adds what another writer wrote: other files, other slices. kInvalidArgument where the two mean
  /// different tensors by one key.
  void merge(Contents other);
};

/// What decides the bits of a run, by name: seed, optimizer, batch, graph, data.
using Facts = std::map<std::string, std::string>;

/// The state of a training after `step` steps. Plain data.
struct Index {
  std::int64_t step = 0;      ///< Steps that were done: the next one's number.
  std::int64_t position = 0;  ///< Global index of the next sample.
  Facts facts;
  Contents contents;
  bool operator==(const Index&) const = default;
};

inline constexpr DocumentKind kIndexDocument{"trireme.checkpoint", 1, true};

/// Rows of a tensor of this shape.
std::int64_t num_rows(const std::vector<std::int64_t>& shape);

/// `[3, 4]`.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// The name of a slice in its file: `KEY` of a whole tensor, else `KEY[begin:end]`.
std::string name_in_file(const std::string& key, const TensorEntry& tensor, const Slice& slice);

Json to_json(const Contents& contents);
Json to_json(const Index& index);

/// Errors   kCorruptData, naming the place: a file name with a folder in it or listed twice, slices
///          of files that are not listed.
Contents contents_from_json(const JsonField& field);

/// The index as file form (docs/formats.md). Both refuse tensors whose slices leave rows out, and
/// `load` a file without its hash: no bit of a run depends on an edit.
///
/// Errors   those of read_document and contents_from_json; kCorruptData.
std::string save(const Index& index, const std::filesystem::path& path);
Index load(const std::filesystem::path& path);

/// A summary and the tensors, for people.
std::string show(const Index& index);

}  // namespace trireme::checkpoint
