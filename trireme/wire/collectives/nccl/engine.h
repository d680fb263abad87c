#pragma once

#include <memory>
#include <optional>

#include "trireme/wire/collectives/device/device_engine.h"
#include "trireme/wire/collectives/device/host_exchange.h"

namespace trireme::collectives {

/// Why there is no NCCL for this build and machine; nothing where there is. Loads it.
std::optional<Error> why_no_nccl();

/// The operations of a group by NCCL, which is loaded for it. Ranks connect in the first one that
/// it does, within the group's deadline.
///
/// device    a GPU that no other rank of the group has.
/// exchange  outlives the engine.
/// Errors    kUnavailable where there is no NCCL.
std::unique_ptr<DeviceEngine> make_nccl_engine(const Members& members, const Device& device,
                                               HostExchange& exchange);

}  // namespace trireme::collectives
