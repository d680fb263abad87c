#include "trireme/wire/collectives/ipc/ipc_engine.h"

#include <chrono>
#include <thread>
#include <utility>

#include "trireme/base/cuda/stream.h"
#include "trireme/wire/collectives/device/connect.h"

namespace trireme::collectives {
namespace {

using kernels::cuda::OneShotRegion;

constexpr std::size_t kRegionBytes =
    (sizeof(OneShotRegion) + cuda::kIpcBytes - 1) / cuda::kIpcBytes * cuda::kIpcBytes;

}  // namespace

IpcRegion::IpcRegion(int device)
    : device_(device), memory_(device, kRegionBytes), handle_(cuda::ipc_handle(memory_)) {}

IpcEngine::IpcEngine(const Members& members, IpcRegion region, const std::vector<Card>& cards)
    : world_ranks_(members.ranks),
      region_(std::move(region)),
      is_aborted_(region_.device()),
      differs_(region_.device()) {
  ranks_.size = members.size();
  ranks_.rank = members.group_rank;
  ranks_.is_aborted = is_aborted_.of_device();
  ranks_.differs = differs_.of_device();
  const Card& own = cards[members.group_rank];
  opened_.reserve(cards.size());
  for (int i = 0; i < members.size(); ++i) {
    const Card& card = cards[i];
    if (card.address == 0) {
      throw Error(ErrorKind::kUnavailable,
                  "rank " + std::to_string(members.ranks[i]) + " has no memory to meet in");
    }
    std::byte* begin = nullptr;
    if (card.process != own.process) {
      begin = opened_.emplace_back(region_.device(), card.handle).begin();
    } else if (cuda::reach(region_.device(), card.index)) {
      begin = reinterpret_cast<std::byte*>(card.address);
    } else {
      throw Error(ErrorKind::kUnavailable,
                  "this GPU does not reach that of rank " + std::to_string(members.ranks[i]));
    }
    ranks_.regions[i] = reinterpret_cast<OneShotRegion*>(begin);
  }
}

std::optional<std::string> IpcEngine::why_not(const Description& description) const {
  return why_not_ipc(description);
}

/// One launch with one meeting; beyond, every rank reads what a ring would read in parts.
std::size_t IpcEngine::best_below() const {
  return std::size_t{kernels::cuda::kMostBlocks} * kernels::cuda::kSliceBytes;
}

void IpcEngine::enqueue(const Request& request, Stream& stream, const Checkpoint& /*checkpoint*/) {
  const bool is_barrier = request.description.operation == Collective::kBarrier;
  stream_ = &stream;
  kernels::cuda::one_shot_all_reduce(
      ranks_,
      {.dtype = request.data.dtype,
       .op = is_barrier ? kernels::ReduceOp::kSum : request.description.reduce},
      request.scale, request.data.bytes.data(), request.data.count(), cuda::handle_of(stream));
}

std::optional<Error> IpcEngine::failure() {
  const std::uint32_t other = differs_.get();
  if (other == 0) return std::nullopt;
  return Error(ErrorKind::kInvalidArgument,
               "ranks " + std::to_string(world_ranks_[ranks_.rank]) + " and " +
                   std::to_string(world_ranks_[other - 1]) +
                   " call different operations at the same time: other counts, types or "
                   "reductions; GroupOptions::checks_calls says which");
}

void IpcEngine::abort() noexcept {
  has_aborted_ = true;
  is_aborted_.set(1);
}

/// Whether all ranks' kernels are done with this one's region: they have come to a last meeting.
bool IpcEngine::has_left() noexcept {
  constexpr std::chrono::seconds kPatience{2};  // ranks may end their groups in another order
  if (has_aborted_) return false;
  if (stream_ == nullptr || ranks_.size == 1) return true;
  try {
    const cuda::CurrentDevice current(stream_->device());
    kernels::cuda::one_shot_all_reduce(ranks_, {.dtype = Dtype::kU8}, 1, nullptr, 0,
                                       cuda::handle_of(*stream_));
    const auto end = make_event(stream_->device());
    end->record(*stream_);
    const auto limit = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < limit) {
      if (end->is_done()) return true;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    is_aborted_.set(1);
    end->wait();  // our kernel has seen it at once
  } catch (const Error&) {
    return false;
  }
  return false;
}

IpcEngine::~IpcEngine() {
  if (!has_left()) region_.abandon();
}

}  // namespace trireme::collectives
