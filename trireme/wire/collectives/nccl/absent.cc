// In place of the other sources here where NCCL's header was not found.

#include "trireme/wire/collectives/device/device_engine.h"

namespace trireme::collectives {

std::optional<Error> why_no_nccl() {
  return Error(ErrorKind::kUnavailable,
               "this program was built without NCCL's header; install it beside the CUDA toolkit "
               "(Debian: libnccl-dev, Python: nvidia-nccl-cu13) and configure the build anew");
}

std::unique_ptr<DeviceEngine> make_nccl_engine(const Members& /*members*/, const Device& /*device*/,
                                               HostExchange& /*exchange*/) {
  throw Error(*why_no_nccl());
}

}  // namespace trireme::collectives
