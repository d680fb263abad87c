#include "trireme/wire/transport/ofi/library.h"

#include <dlfcn.h>

#include "trireme/base/error.h"

namespace trireme::transport::internal {
namespace {

constexpr const char* kName = "libfabric.so.1";

Error unavailable(const std::string& problem) {
  Error error(ErrorKind::kUnavailable,
              problem +
                  "; install it (Debian: libfabric1, on EC2 Amazon's EFA installer), or set "
                  "TRIREME_TRANSPORT=tcp");
  return error;
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw unavailable(std::string(kName) + " has no " + name);
}

}  // namespace

std::string Library::problem(const std::string& what, long code) const {
  return "libfabric cannot " + what + ": " + strerror(static_cast<int>(-code));
}

void Library::check(const std::string& what, long code) const {
  if (code < 0) throw Error(ErrorKind::kIo, problem(what, code));
}

Library load_library() {
  void* handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* reason = dlerror();
    throw unavailable("no libfabric: " + std::string(reason == nullptr ? kName : reason));
  }
  Library library;
  find(handle, "fi_getinfo", library.getinfo);
  find(handle, "fi_dupinfo", library.dupinfo);
  find(handle, "fi_freeinfo", library.freeinfo);
  find(handle, "fi_fabric", library.fabric);
  find(handle, "fi_strerror", library.strerror);
  return library;
}

}  // namespace trireme::transport::internal
