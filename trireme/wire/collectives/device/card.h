#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trireme/base/cuda/memory.h"
#include "trireme/wire/collectives/device/host_exchange.h"
#include "trireme/wire/collectives/members.h"

namespace trireme::collectives {

/// What a rank tells the others of its GPU. All ranks are of one build.
struct Card {
  cuda::DeviceId device{};  ///< Which GPU, in all processes.
  std::int32_t index = 0;   ///< In its own.
  std::int32_t has_nccl = 0;
  std::uint64_t process = 0;  ///< The same in ranks of one process, on a host.
  std::uint64_t address = 0;  ///< Of its region, in its own process; 0: it has none.
  cuda::IpcHandle handle{};   ///< Of its region, for others.
};

/// Of this process.
std::uint64_t process_id();

/// By group rank.
std::vector<Card> exchange_cards(const Members& members, HostExchange& exchange, const Card& own);

/// Whether all ranks say so.
bool all_agree(const Members& members, HostExchange& exchange, bool own);

/// Group ranks that have the same GPU; nothing where all have their own.
struct Sharing {
  int first;
  int second;
};
std::optional<Sharing> find_sharing(const std::vector<Card>& cards);

}  // namespace trireme::collectives
