#pragma once

namespace trireme::memory {

/// Settings of torch that belong to the whole process, made once before the first step: one
/// intra-op thread (results depend on their number) and the block allocator.
void apply_torch_settings();

}  // namespace trireme::memory
