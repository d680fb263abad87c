#include "trireme/engine/program/saved_tensors.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/error.h"

namespace trireme::program {
namespace {

std::span<std::byte> bytes_of(const at::Storage& storage) {
  return {static_cast<std::byte*>(storage.mutable_data()), storage.nbytes()};
}

/// Has memory that a file can hold.
bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.is_cpu() && tensor.has_storage() &&
         !tensor.is_quantized() && !tensor.is_conj() && !tensor.is_neg();
}

}  // namespace

OffloadedTensors::OffloadedTensors(const std::filesystem::path& folder,
                                   const std::vector<at::Tensor*>& tensors)
    : file_(folder) {
  std::unordered_map<const void*, std::size_t> index_of;
  for (const at::Tensor* tensor : tensors) {
    const at::Storage& storage = tensor->storage();
    const auto [found, is_new] =
        index_of.try_emplace(storage.unsafeGetStorageImpl(), bytes_of_storage_.size());
    if (is_new) {
      bytes_of_storage_.push_back(storage.nbytes());
      file_.append(bytes_of(storage));
    }
    views_.push_back({found->second, tensor->scalar_type(), tensor->sizes().vec(),
                      tensor->strides().vec(), tensor->storage_offset()});
  }
  for (at::Tensor* tensor : tensors) *tensor = at::Tensor();
}

void OffloadedTensors::read(const std::vector<at::Tensor*>& tensors) const {
  TRIREME_CHECK(tensors.size() == views_.size(), "other tensors than were written");
  std::vector<at::Tensor> storages;
  std::uint64_t offset = 0;
  for (const std::size_t bytes : bytes_of_storage_) {
    storages.push_back(at::empty({static_cast<std::int64_t>(bytes)}, at::kByte));
    file_.read(offset, bytes_of(storages.back().storage()));
    offset += bytes;
  }
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const View& view = views_[i];
    *tensors[i] =
        at::empty({0}, view.dtype)
            .set_(storages[view.storage].storage(), view.offset, view.sizes, view.strides);
  }
}

std::shared_ptr<SavedTensors::Entry> SavedTensors::add(const at::Tensor& tensor) {
  // Without its history, which holds what saves it.
  auto entry = std::make_shared<Entry>(tensor.tensor_data(), tensor._version());
  if (is_plain(tensor) && !stays_.contains(tensor.storage().unsafeGetStorageImpl())) {
    entries_.push_back(entry);
  }
  return entry;
}

void SavedTensors::offload(const std::filesystem::path& folder) {
  std::vector<at::Tensor*> tensors;
  for (const std::weak_ptr<Entry>& weak : entries_) {
    std::shared_ptr<Entry> entry = weak.lock();
    if (!entry) continue;
    if (entry->tensor._version() != entry->version) {
      throw Error(ErrorKind::kInvalidArgument,
                  "a tensor that the backward needs was written to after it had been saved; leave "
                  "the in-place operator out");
    }
    tensors.push_back(&entry->tensor);
    away_.push_back(std::move(entry));
  }
  entries_.clear();
  file_ = std::make_unique<OffloadedTensors>(folder, tensors);
}

void SavedTensors::prefetch() const {
  if (file_) file_->prefetch();
}

void SavedTensors::fetch() {
  if (!file_) return;
  std::vector<at::Tensor*> tensors;
  for (const std::shared_ptr<Entry>& entry : away_) tensors.push_back(&entry->tensor);
  file_->read(tensors);
  for (const std::shared_ptr<Entry>& entry : away_) entry->version = entry->tensor._version();
  away_.clear();
  file_.reset();
}

namespace {

using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;

thread_local SavedTensors* collecting = nullptr;

class Hooks : public SavedVariableHooks {
 public:
  void call_pack_hook(const at::Tensor& tensor) override { entry_ = collecting->add(tensor); }

  at::Tensor call_unpack_hook() override {
    TRIREME_CHECK(entry_->tensor.defined(), "a saved tensor is still in its file");
    if (entry_->tensor._version() != entry_->version) {
      throw Error(ErrorKind::kInvalidArgument,
                  "a tensor that the backward needs was written to after it had been saved");
    }
    return entry_->tensor;
  }

 private:
  std::shared_ptr<SavedTensors::Entry> entry_;
};

/// The process's engine, as torch asks for it where it saves a tensor; runs nothing.
class CollectingEngine : public Engine {
 public:
  CollectingEngine() = default;
  ~CollectingEngine() override { stop(); }

  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    return std::make_unique<Hooks>();
  }
};

Engine* usual_engine = nullptr;

Engine& engine_of_thread() {
  static CollectingEngine engine;
  return collecting == nullptr ? *usual_engine : engine;
}

/// Torch has one engine for all threads, and asks it for hooks. A process that is forked afterwards gets Python's engine
/// as it is.
void choose_engine_by_thread() {
  static std::once_flag once;
  std::call_once(once, [] {
    usual_engine = &Engine::get_default_engine();
    torch::autograd::set_default_engine_stub(&engine_of_thread);
  });
}

}  // namespace

CollectSaved::CollectSaved(SavedTensors* saved) : before_(collecting) {
  if (saved == nullptr) return;
  choose_engine_by_thread();
  collecting = saved;
}

CollectSaved::~CollectSaved() { collecting = before_; }

}  // namespace trireme::program
