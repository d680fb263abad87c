#include "trireme/wire/collectives/device/rules.h"

#include "trireme/base/error.h"

namespace trireme::collectives {
namespace {

using kernels::ReduceOp;

}  // namespace

std::optional<std::string> why_not_nccl(const Description& description) {
  if (!reduces(description.operation)) return std::nullopt;
  const ReduceOp op = description.reduce;
  if (!kernels::is_reducible(description.dtype, op) || op == ReduceOp::kAnd ||
      op == ReduceOp::kOr || op == ReduceOp::kXor) {
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
  const bool can = description.operation == Operation::kBarrier ||
                   (description.operation == Operation::kAllReduce &&
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

}  // namespace trireme::collectives
