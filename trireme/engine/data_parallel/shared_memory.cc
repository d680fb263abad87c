#include "trireme/engine/data_parallel/shared_memory.h"

#include <ATen/ops/from_blob.h>

#include <memory>

#include "trireme/engine/memory/block_allocator.h"

namespace trireme::data_parallel {

parameters::FlatMemory memory_of(collectives::Group& group) {
  return [&group](std::int64_t bytes) {
    const std::span<std::byte> memory = group.allocate(static_cast<std::size_t>(bytes));
    const auto counted = std::make_shared<memory::OtherMemory>(bytes);  // held by the tensor
    return at::from_blob(
        memory.data(), {bytes}, [counted](void*) {}, at::TensorOptions().dtype(at::kByte));
  };
}

}  // namespace trireme::data_parallel
