#include "trireme/engine/memory/torch_settings.h"

#include <ATen/Parallel.h>

#include "trireme/engine/memory/block_allocator.h"

namespace trireme::memory {

void apply_torch_settings() {
  at::set_num_threads(1);
  install_block_allocator();
}

}  // namespace trireme::memory
