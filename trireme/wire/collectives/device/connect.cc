#include "trireme/wire/collectives/device/connect.h"

#include <string>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/collectives/device/device_engine.h"
#include "trireme/wire/collectives/device/host_exchange.h"
#include "trireme/wire/collectives/ipc/ipc_engine.h"

namespace trireme::collectives {
namespace {

using kernels::ReduceOp;

}  // namespace

std::optional<std::string> why_not_nccl(const Description& description) {
  if (!reduces(description.operation)) return std::nullopt;
  const ReduceOp op = description.reduce;
  if (!kernels::is_reducible(description.dtype, op) || description.dtype == Dtype::kI16 ||
      op == ReduceOp::kAnd || op == ReduceOp::kOr || op == ReduceOp::kXor) {
    return "NCCL has no " + std::string(kernels::to_text(op)) + " of " +
           std::string(to_text(description.dtype));
  }
  if (description.order == Order::kCanonical && is_real(description.dtype)) {
    return "NCCL combines in an order of its own; set GroupOptions::order to kAny, or keep to an "
           "all_reduce of ranks on one host";
  }
  return std::nullopt;
}

std::optional<std::string> why_not_ipc(const Description& description) {
  const bool can = description.operation == Collective::kBarrier ||
                   (description.operation == Collective::kAllReduce &&
                    kernels::is_reducible(description.dtype, description.reduce));
  if (can) return std::nullopt;
  return "kernels over shared memory have no " + std::string(to_text(description.operation)) +
         ", only all_reduce and barrier";
}

DeviceEngine& choose_engine(std::span<const std::unique_ptr<DeviceEngine>> engines,
                            const Request& request, const std::string& why_none) {
  DeviceEngine* chosen = nullptr;
  std::string reasons;
  for (const auto& engine : engines) {
    if (const auto reason = engine->why_not(request.description)) {
      reasons += (reasons.empty() ? "" : "; ") + *reason;
      continue;
    }
    chosen = engine.get();
    if (request.bytes() <= engine->best_below()) break;
  }
  if (chosen != nullptr) return *chosen;
  if (!why_none.empty()) reasons += (reasons.empty() ? "" : "; ") + why_none;
  throw Error(ErrorKind::kInvalidArgument, "nothing can do " + to_text(request.description) +
                                               " on buffers of a GPU: " + reasons);
}

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
