#pragma once

#include <cstdint>

#include "trireme/engine/train/batch_reader.h"

namespace trireme::train {

/// Makes a workload whose initial weights depend on (seed, parameter name) alone: not
/// on what else is constructed, nor in which order.
///
/// The maker runs twice. In the first run each random operator is matched with the registered
/// parameter whose memory it fills; in the second it draws from the stream (seed, parameter name,
/// how many draws the parameter had). Draws for anything else, `torch::randn(...) * 0.02` included,
/// such as synthetic data, come from the stream (seed, number of the draw).
///
/// defers   large parameters get their values when `Model::fill` is called with them, the same ones
///          (record/deferred_init.h).
Workload construct(const MakeWorkload& make_workload, std::uint64_t seed, bool defers = false);

}  // namespace trireme::train
