#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trireme/wire/collectives/device/device_engine.h"
#include "trireme/wire/collectives/device/device_queue.h"

namespace trireme::collectives {

/// The engines that all ranks of a group have, found by what they tell each other; every rank calls
/// it. Blocks.
///
/// device    a GPU of this process.
/// exchange  outlives the engines.
/// Errors    those of HostExchange; kUnavailable and kIo of the GPU.
DeviceEngines connect_engines(const Members& members, const Device& device, HostExchange& exchange);

/// Why NCCL cannot do what a description says; nothing where it can. docs/algorithms.md, Device
/// buffers.
std::optional<std::string> why_not_nccl(const Description& description);

/// As above, of kernels over memory that all ranks reach.
std::optional<std::string> why_not_ipc(const Description& description);

/// The first engine that can do it and is best for so many bytes; else the last that can.
///
/// why_none   for the error where there is no engine that could do more.
/// Errors     kInvalidArgument with every engine's reason where none can.
DeviceEngine& choose_engine(std::span<const std::unique_ptr<DeviceEngine>> engines,
                            const Request& request, const std::string& why_none);

}  // namespace trireme::collectives
