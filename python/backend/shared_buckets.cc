#include "python/backend/shared_buckets.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "trireme/wire/collectives/group.h"

namespace trireme::backend {

SharedBuckets::SharedBuckets(const std::shared_ptr<RankGroup>& group) : group_(group) {
  group->before_close([moved = moved_] { move_back(*moved); });
}

bool SharedBuckets::contains(const at::Tensor& tensor) const {
  const void* memory = tensor.storage().data();
  return std::ranges::any_of(*moved_, [&](const Moved& one) { return one.memory == memory; });
}

void SharedBuckets::move(const at::Tensor& tensor) {
  const std::shared_ptr<RankGroup> group = group_.lock();
  const c10::Storage storage = tensor.storage();
  if (!group || storage.nbytes() == 0) return;
  const std::span<std::byte> shared = group->start(
      std::nullopt, [&](collectives::Group& wire) { return wire.allocate(storage.nbytes()); });
  std::memcpy(shared.data(), storage.data(), storage.nbytes());
  // The group owns it until it is closed, and then it is the tensor's no more.
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(at::DataPtr(shared.data(), tensor.device()));
  moved_->push_back(
      {c10::weak_intrusive_ptr<c10::StorageImpl>(storage.getWeakStorageImpl()), shared.data()});
}

void SharedBuckets::move_back(const std::vector<Moved>& all) {
  for (const Moved& one : all) {
    const auto storage = one.storage.lock();
    if (!storage || storage->data() != one.memory) continue;
    at::DataPtr own = c10::GetAllocator(c10::kCPU)->allocate(storage->nbytes());
    std::memcpy(own.get(), one.memory, storage->nbytes());
    storage->set_data_ptr_noswap(std::move(own));
  }
}

}  // namespace trireme::backend
