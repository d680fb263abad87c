#pragma once

#include "trireme/wire/collectives/device/device_queue.h"

namespace trireme::collectives {

/// The engines that all ranks of a group have, found by what they tell each other; every rank calls
/// it. Blocks.
///
/// device    a GPU of this process.
/// exchange  outlives the engines.
/// Errors    those of HostExchange; kUnavailable and kIo of the GPU.
DeviceEngines connect_engines(const Members& members, const Device& device, HostExchange& exchange);

}  // namespace trireme::collectives
