#pragma once

#include <vector>

#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

/// Most microbatches whose activations each stage holds at once: from F until B or W.
///
/// schedule   one that passes `check`.
std::vector<int> most_in_flight(const Schedule& schedule);

}  // namespace trireme::schedule
