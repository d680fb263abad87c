#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/kernels/reduce/combine.h"

namespace trireme::kernels::reference {

/// As kernels/reduce/combine.h for one target, an element after the other by the list of merges;
/// for tests.
void combine(const ElementReduction& reduction, std::span<const std::byte* const> sources,
             std::byte* target, std::int64_t count);

}  // namespace trireme::kernels::reference
