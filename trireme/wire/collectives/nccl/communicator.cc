#include "trireme/wire/collectives/nccl/communicator.h"

#include <dlfcn.h>

#include <chrono>
#include <thread>
#include <utility>

namespace trireme::collectives::internal {
namespace {

constexpr const char* kName = "libnccl.so.2";

// Communicators that are made without blocking, averages, scaled sums, and groups over all of it.
constexpr int kOldest = NCCL_VERSION(2, 18, 0);

Error unavailable(const std::string& problem) {
  return {ErrorKind::kUnavailable,
          problem +
              "; install NCCL 2.18 or later (Debian: libnccl2, Python: nvidia-nccl-cu13) where "
              "the loader finds it (LD_LIBRARY_PATH), or use device cpu"};
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw unavailable(std::string(kName) + " has no " + name);
}

void find_all(void* handle, NcclLibrary& library) {
  find(handle, "ncclGetVersion", library.get_version);
  find(handle, "ncclGetUniqueId", library.get_unique_id);
  find(handle, "ncclCommInitRankConfig", library.init_rank);
  find(handle, "ncclCommFinalize", library.finalize);
  find(handle, "ncclCommDestroy", library.destroy);
  find(handle, "ncclCommAbort", library.abort);
  find(handle, "ncclCommGetAsyncError", library.get_async_error);
  find(handle, "ncclGetErrorString", library.error_text);
  find(handle, "ncclGetLastError", library.last_error);
  find(handle, "ncclAllReduce", library.all_reduce);
  find(handle, "ncclReduce", library.reduce);
  find(handle, "ncclReduceScatter", library.reduce_scatter);
  find(handle, "ncclAllGather", library.all_gather);
  find(handle, "ncclBroadcast", library.broadcast);
  find(handle, "ncclSend", library.send);
  find(handle, "ncclRecv", library.recv);
  find(handle, "ncclGroupStart", library.group_start);
  find(handle, "ncclGroupEnd", library.group_end);
  find(handle, "ncclRedOpCreatePreMulSum", library.make_scaled_sum);
  find(handle, "ncclRedOpDestroy", library.destroy_op);
}

ErrorKind kind_of(ncclResult_t code) {
  switch (code) {
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return ErrorKind::kInvalidArgument;
    case ncclRemoteError:
      return ErrorKind::kPeerLost;
    default:
      return ErrorKind::kIo;
  }
}

}  // namespace

Error NcclLibrary::problem(const std::string& call, ncclResult_t code) const {
  const char* more = last_error(nullptr);
  std::string text = "NCCL's " + call + ": " + error_text(code);
  if (more != nullptr && *more != '\0') text += std::string(" (") + more + ")";
  return {kind_of(code), text + "; NCCL_DEBUG=WARN says more"};
}

NcclLibrary load_nccl() {
  void* handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw unavailable("no NCCL: " + std::string(reason == nullptr ? kName : reason));
  }
  NcclLibrary library;
  find(handle, "ncclGetVersion", library.get_version);
  int version = 0;
  if (library.get_version(&version) != ncclSuccess || version < kOldest) {
    throw unavailable("NCCL " + std::to_string(version) + " is too old");
  }
  find_all(handle, library);
  return library;
}

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
