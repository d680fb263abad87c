#include "trireme/engine/parameters/sharded_bucket.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "trireme/base/check.h"

namespace trireme::parameters {
namespace {

constexpr const char* kInShards =
    "the values of this parameter are in shards on the replicas, as --shard-parameters says; "
    "read them from a checkpoint, or from the weights at the end of the training";

/// In the order in which the elements lie in a slot.
at::Tensor in_memory_order(const at::Tensor& value) {
  if (!value.is_non_overlapping_and_dense()) return value.contiguous().view(-1);
  return value.as_strided({value.numel()}, {1});
}

void hide(c10::StorageImpl& storage) {
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, at::kCPU));
  if (storage.nbytes() > 0) storage.release_data_and_set_meta_custom_data_ptr_error_msg_(kInShards);
}

}  // namespace

ShardedBucket::ShardedBucket(const layout::Bucket& bucket, int replica, at::ScalarType type)
    : bucket_(bucket), range_(bucket.shards[replica]) {
  shard_ =
      at::zeros({range_.end_elements - range_.begin_elements}, at::TensorOptions().dtype(type));
}

/// Tensors of the model may outlive it.
ShardedBucket::~ShardedBucket() { drop(); }

at::Tensor ShardedBucket::add(const layout::Slot& slot, const at::Tensor& value) {
  const at::NoGradGuard no_grad;
  const std::int64_t begin = std::max(slot.offset_elements, range_.begin_elements);
  const std::int64_t end = std::min(slot.offset_elements + slot.num_elements, range_.end_elements);
  if (begin < end) {
    const at::Tensor own =
        in_memory_order(value).narrow(0, begin - slot.offset_elements, end - begin);
    shard_.narrow(0, begin - range_.begin_elements, end - begin).copy_(own);
  }
  const auto each = static_cast<std::int64_t>(shard_.element_size());
  c10::Storage storage(c10::Storage::use_byte_size_t(),
                       static_cast<std::size_t>(slot.num_elements * each),
                       at::DataPtr(nullptr, at::kCPU), /*allocator=*/nullptr, /*resizable=*/false);
  hide(*storage.unsafeGetStorageImpl());
  const std::vector<std::int64_t> strides = value.is_non_overlapping_and_dense()
                                                ? value.strides().vec()
                                                : value.contiguous().strides().vec();
  at::Tensor parameter = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), shard_.dtype());
  parameter.unsafeGetTensorImpl()->set_sizes_and_strides(value.sizes(), strides);
  parameters_.push_back({std::move(storage), slot.offset_elements * each});
  return parameter;
}

const at::Tensor& ShardedBucket::make_whole() {
  TRIREME_CHECK(!whole_.defined(), "the values of a bucket are whole already");
  whole_ = at::empty({bucket_.num_elements}, shard_.options());
  return whole_;
}

void ShardedBucket::show() {
  TRIREME_CHECK(whole_.defined(), "values are shown that nobody has gathered");
  auto* memory = static_cast<std::byte*>(whole_.mutable_data_ptr());
  for (const Parameter& parameter : parameters_) {
    c10::StorageImpl& storage = *parameter.storage.unsafeGetStorageImpl();
    storage.clear_data_ptr_access_error_msg_();
    storage.set_data_ptr_noswap(at::DataPtr(memory + parameter.offset_bytes, at::kCPU));
  }
  is_shown_ = true;
}

void ShardedBucket::drop() {
  for (const Parameter& parameter : parameters_) hide(*parameter.storage.unsafeGetStorageImpl());
  whole_ = at::Tensor();
  is_shown_ = false;
}

bool has_memory(const at::Tensor& parameter) {
  if (parameter.numel() == 0) return true;
  return parameter.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get() != nullptr;
}

}  // namespace trireme::parameters
