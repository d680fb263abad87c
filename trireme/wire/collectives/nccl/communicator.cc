#include "trireme/wire/collectives/nccl/communicator.h"

#include <chrono>
#include <thread>
#include <utility>

namespace trireme::collectives::internal {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kPause{50};

}  // namespace

Communicator::Communicator(const NcclLibrary& library, const Place& place,
                           const Checkpoint& checkpoint)
    : library_(library) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t code = library_.init_rank(&handle_, place.size, place.id, place.rank, &config);
  try {
    finish("ncclCommInitRankConfig", code, checkpoint);
  } catch (...) {
    abort();
    throw;
  }
}

ncclResult_t Communicator::state() const {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t code = library_.get_async_error(handle_, &state);
  return code == ncclSuccess ? state : code;
}

void Communicator::finish(const char* call, ncclResult_t code, const Checkpoint& checkpoint) {
  while (code == ncclInProgress) {
    code = state();
    if (code != ncclInProgress) break;
    checkpoint();
    std::this_thread::sleep_for(kPause);
  }
  if (code != ncclSuccess) throw library_.problem(call, code);
}

std::optional<Error> Communicator::failure() {
  if (handle_ == nullptr) return std::nullopt;
  const ncclResult_t code = state();
  if (code == ncclSuccess || code == ncclInProgress) return std::nullopt;
  return library_.problem("communicator", code);
}

void Communicator::abort() noexcept {
  if (handle_ != nullptr) library_.abort(std::exchange(handle_, nullptr));
}

Communicator::~Communicator() {
  constexpr std::chrono::seconds kPatience{2};
  if (handle_ == nullptr) return;
  ncclResult_t code = library_.finalize(handle_);
  for (const auto limit = Clock::now() + kPatience;
       code == ncclInProgress && Clock::now() < limit;) {
    std::this_thread::sleep_for(kPause);
    code = state();
  }
  if (code == ncclSuccess) {
    library_.destroy(handle_);
  } else {
    abort();
  }
}

}  // namespace trireme::collectives::internal
