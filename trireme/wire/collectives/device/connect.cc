#include "trireme/wire/collectives/device/connect.h"

#include <string>
#include <utility>

#include "trireme/wire/collectives/device/card.h"
#include "trireme/wire/collectives/ipc/ipc_engine.h"
#include "trireme/wire/collectives/nccl/engine.h"

namespace trireme::collectives {
namespace {

/// Memory in which this rank meets others; nothing where they are too many or on other hosts, or
/// the GPU cannot.
std::optional<IpcRegion> make_region(const Members& members, const Device& device) {
  if (members.size() > kernels::cuda::kMostRanks || !members.share_memory()) return std::nullopt;
  try {
    return IpcRegion(device.index);
  } catch (const Error&) {
    return std::nullopt;  // the others are told; NCCL may still do everything
  }
}

/// The engine where all ranks have it: they reach each other's regions, or none uses them.
std::unique_ptr<DeviceEngine> connect_ipc(const Members& members, HostExchange& exchange,
                                          std::optional<IpcRegion> region,
                                          const std::vector<Card>& cards) {
  std::unique_ptr<DeviceEngine> engine;
  try {
    if (region) engine = std::make_unique<IpcEngine>(members, std::move(*region), cards);
  } catch (const Error&) {
    engine = nullptr;  // as above
  }
  return all_agree(members, exchange, engine != nullptr) ? std::move(engine) : nullptr;
}

/// Why the group has no NCCL; empty where it has.
std::string why_no_nccl_among(const Members& members, const std::vector<Card>& cards) {
  for (int i = 0; i < members.size(); ++i) {
    if (cards[i].has_nccl != 0) continue;
    const bool is_own = i == members.group_rank;
    return "rank " + std::to_string(members.ranks[i]) + " has no NCCL" +
           (is_own ? " (" + why_no_nccl()->message() + ")" : "");
  }
  if (const auto sharing = find_sharing(cards)) {
    return "ranks " + std::to_string(members.ranks[sharing->first]) + " and " +
           std::to_string(members.ranks[sharing->second]) +
           " share a GPU, which NCCL refuses; give each rank its own (CUDA_VISIBLE_DEVICES)";
  }
  return "";
}

}  // namespace

DeviceEngines connect_engines(const Members& members, const Device& device,
                              HostExchange& exchange) {
  std::optional<IpcRegion> region = make_region(members, device);
  const Card own{.device = cuda::device_id(device.index),
                 .index = device.index,
                 .has_nccl = why_no_nccl() ? 0 : 1,
                 .process = process_id(),
                 .address = region ? reinterpret_cast<std::uint64_t>(region->begin()) : 0,
                 .handle = region ? region->handle() : cuda::IpcHandle{}};
  const std::vector<Card> cards = exchange_cards(members, exchange, own);
  DeviceEngines result;
  if (auto engine = connect_ipc(members, exchange, std::move(region), cards)) {
    result.engines.push_back(std::move(engine));
  }
  result.why_no_other = why_no_nccl_among(members, cards);
  if (result.why_no_other.empty()) {
    result.engines.push_back(make_nccl_engine(members, device, exchange));
  }
  return result;
}

}  // namespace trireme::collectives
