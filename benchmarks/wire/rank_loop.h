#pragma once

#include <filesystem>

#include "benchmarks/wire/contender.h"

namespace trireme::bench {

/// What a rank of a contestant does: reads orders from its pipe in `folder`, runs them, answers.
/// Waits for orders asleep. Returns at the line that ends it, or when
/// who orders has gone.
///
/// Errors   kIo of the pipes; those of `measure`.
void take_orders(const std::filesystem::path& folder, Contender& contender);

}  // namespace trireme::bench
