#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "trireme/base/scratch_file.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::program {

/// Tensors whose bytes are in a file, and whose memory is free meanwhile. Tensors that share memory
/// do so again afterwards. Caller-synchronised.
class OffloadedTensors {
 public:
  /// Writes the memory of `tensors`, on the CPU, each storage once, and lets go of them: they are undefined then.
  ///
  /// Errors   those of ScratchFile; the tensors are left as they were.
  OffloadedTensors(const std::filesystem::path& folder, const std::vector<at::Tensor*>& tensors);

  /// Asks the system to have the bytes at hand soon.
  void prefetch() const { file_.prefetch(); }

  /// Gives `tensors`, the same ones in the same order, new memory with the same bytes and strides.
  void read(const std::vector<at::Tensor*>& tensors) const;

 private:
  /// A tensor: part of a storage.
  struct View {
    std::size_t storage;
    at::ScalarType dtype;
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset;
  };
  /// The file's parts, one after another.
  std::vector<std::size_t> bytes_of_storage_;
  std::vector<View> views_;
  ScratchFile file_;
};

/// What torch's autograd saved during a forward for its backward: collected, and moved to a file and back.
///
/// Belongs to one thread at a time. The autograd graph and this may end in any order.
class SavedTensors {
 public:
  /// One that autograd holds.
  struct Entry {
    at::Tensor tensor;  ///< Undefined while it is in a file.
    std::uint32_t version = 0;
  };

  /// stays   storages that are held anyway: those of parameters.
  explicit SavedTensors(std::set<const void*> stays) : stays_(std::move(stays)) {}

  /// For a tensor that autograd saves.
  std::shared_ptr<Entry> add(const at::Tensor& tensor);

  /// All that is still wanted goes to a file in `folder`.
  ///
  /// Errors   kInvalidArgument where a tensor has been written to since it was saved, as torch's own backward says;
  ///          those of OffloadedTensors.
  void offload(const std::filesystem::path& folder);
  void prefetch() const;
  void fetch();

 private:
  std::set<const void*> stays_;
  std::vector<std::weak_ptr<Entry>> entries_;
  std::vector<std::shared_ptr<Entry>> away_;
  std::unique_ptr<OffloadedTensors> file_;
};

/// While it lives, what autograd saves on this thread is collected; and no other hook for saved tensors is asked.
class CollectSaved {
 public:
  explicit CollectSaved(SavedTensors* saved);  ///< Null: does nothing.
  ~CollectSaved();
  CollectSaved(const CollectSaved&) = delete;
  CollectSaved& operator=(const CollectSaved&) = delete;

 private:
  SavedTensors* before_;
};

}  // namespace trireme::program
