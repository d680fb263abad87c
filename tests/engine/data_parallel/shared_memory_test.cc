#include "trireme/engine/data_parallel/shared_memory.h"

#include "tests/engine/data_parallel/replicas.h"
#include "trireme/engine/memory/block_allocator.h"

namespace trireme::data_parallel {
namespace {

using test::Replica;

TEST(SharedMemory, CountsAsTensorsMemory) {
  memory::install_block_allocator();
  test::run(1, [](Replica& /*replica*/, collectives::Group& group, int /*rank*/) {
    const std::int64_t before = memory::memory_use().live_bytes;
    {
      const at::Tensor flat = memory_of(group)(1 << 20);
      EXPECT_EQ(flat.nbytes(), 1U << 20);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(flat.data_ptr()) % 64, 0U);
      EXPECT_EQ(flat.count_nonzero().item<std::int64_t>(), 0);
      EXPECT_GE(memory::memory_use().live_bytes, before + (1 << 20));
    }
    EXPECT_LT(memory::memory_use().live_bytes, before + (1 << 20));
  });
}

}  // namespace
}  // namespace trireme::data_parallel
