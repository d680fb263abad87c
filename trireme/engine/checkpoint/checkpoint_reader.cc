#include "trireme/engine/checkpoint/checkpoint_reader.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <set>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/base/mapped_file.h"
#include "trireme/base/safetensors.h"
#include "trireme/base/sha256.h"
#include "trireme/engine/checkpoint/tensor_file.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"

namespace trireme::checkpoint {

namespace {

[[noreturn]] void fail_file(const std::filesystem::path& path, const std::string& problem) {
  throw Error(ErrorKind::kCorruptData,
              "'" + path.string() + "' is not the file that the checkpoint was written with: " +
                  problem + "; where there is an older one, --resume takes that");
}

}  // namespace

/// A file of the checkpoint, compared with its checksum unless that was done.
struct Reader::Shard {
  MappedFile file;
  std::map<std::string, safetensors::Tensor> tensors;

  Shard(const std::filesystem::path& path, const File& entry, Checksums checksums) : file(path) {
    if (checksums == Checksums::kCompare && sha256(file.bytes()) != entry.sha256) {
      fail_file(path, "its SHA-256 is another");
    }
    for (safetensors::Tensor& tensor : safetensors::parse(file.bytes(), path.string()).tensors) {
      std::string name = tensor.name;
      tensors.emplace(std::move(name), std::move(tensor));
    }
  }
};

Reader::Reader(std::filesystem::path folder, Checksums checksums)
    : folder_(std::move(folder)), checksums_(checksums), index_(load(folder_ / "index.json")) {
  for (const File& file : index_.contents.files) {
    const std::filesystem::path path = folder_ / file.name;
    std::error_code problem;
    const auto bytes = std::filesystem::file_size(path, problem);
    if (problem) fail_file(path, problem.message());
    if (bytes != static_cast<std::uintmax_t>(file.bytes)) {
      fail_file(path,
                "expected " + std::to_string(file.bytes) + " bytes, got " + std::to_string(bytes));
    }
  }
}

Reader::~Reader() = default;

Reader::Shard& Reader::shard(const std::string& file) {
  std::unique_ptr<Shard>& shard = shards_[file];
  if (shard) return *shard;
  const auto& files = index_.contents.files;
  const auto entry =
      std::find_if(files.begin(), files.end(), [&](const File& one) { return one.name == file; });
  TRIREME_CHECK(entry != files.end(), "a slice of a file that the index does not list");
  shard = std::make_unique<Shard>(folder_ / file, *entry, checksums_);
  return *shard;
}

const TensorEntry& Reader::entry(const std::string& key) const {
  const auto found = index_.contents.tensors.find(key);
  if (found != index_.contents.tensors.end()) return found->second;
  throw Error(ErrorKind::kInvalidArgument,
              "the checkpoint '" + folder_.string() + "' has no '" + key + "'");
}

/// The slice as its file has it.
const safetensors::Tensor& Reader::stored(const std::string& key, const TensorEntry& tensor,
                                          const Slice& slice) {
  const std::string name = name_in_file(key, tensor, slice);
  std::vector<std::int64_t> shape = tensor.shape;
  if (!shape.empty()) shape.front() = slice.end - slice.begin;
  const auto& tensors = shard(slice.file).tensors;
  const auto found = tensors.find(name);
  if (found == tensors.end() || found->second.shape != shape ||
      found->second.dtype != tensor.dtype) {
    fail_file(folder_ / slice.file, "it lacks '" + name + "' of shape " + shape_text(shape));
  }
  return found->second;
}

void Reader::read(const std::string& key, const at::Tensor& destination) {
  const at::NoGradGuard no_grad;
  const TensorEntry& tensor = entry(key);
  if (destination.sizes().vec() != tensor.shape ||
      record::to_dtype(destination.scalar_type()) != tensor.dtype) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + key + "' is " + std::string(to_text(tensor.dtype)) + " " +
                    shape_text(tensor.shape) + " in the checkpoint '" + folder_.string() +
                    "' and " + std::string(to_text(record::to_dtype(destination.scalar_type()))) +
                    " " + shape_text(destination.sizes().vec()) + " here");
  }
  read_rows(key, 0, destination);
}

void Reader::read_rows(const std::string& key, std::int64_t begin, const at::Tensor& destination) {
  const at::NoGradGuard no_grad;
  const TensorEntry& tensor = entry(key);
  const std::int64_t end = begin + num_rows(destination.sizes().vec());
  for (const Slice& slice : tensor.slices) {
    const std::int64_t first = std::max(begin, slice.begin), last = std::min(end, slice.end);
    if (first >= last) continue;
    const at::Tensor rows = rows_of(destination, first - begin, last - begin);
    std::vector<std::int64_t> stored_shape = tensor.shape;
    if (!stored_shape.empty()) stored_shape.front() = slice.end - slice.begin;
    void* data = const_cast<std::byte*>(stored(key, tensor, slice).bytes.data());  // read only
    const at::Tensor whole = at::from_blob(data, stored_shape, rows.options());
    rows.copy_(rows_of(whole, first - slice.begin, last - slice.begin));
  }
}

at::Tensor Reader::read(const std::string& key) {
  const TensorEntry& tensor = entry(key);
  for (const Slice& slice : tensor.slices)
    stored(key, tensor, slice);  // before memory is asked for
  const at::Tensor result = at::empty(tensor.shape, record::to_scalar_type(tensor.dtype));
  read(key, result);
  return result;
}

void Reader::verify(std::size_t part, std::size_t parts) {
  std::set<std::string> mine;
  for (std::size_t f = part; f < index_.contents.files.size(); f += parts) {
    mine.insert(index_.contents.files[f].name);
  }
  for (const std::string& name : mine) shard(name);
  for (const auto& [key, tensor] : index_.contents.tensors) {
    for (const Slice& slice : tensor.slices) {
      if (mine.contains(slice.file)) stored(key, tensor, slice);
    }
  }
}

}  // namespace trireme::checkpoint
