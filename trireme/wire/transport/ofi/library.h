#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <memory>
#include <string>

namespace trireme::transport::internal {

/// What libfabric exports; the rest are functions of the objects that it makes.
///
/// Immutable.
struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;

  /// `cannot open an endpoint: No such device`. code: as libfabric returns it, below 0.
  std::string problem(const std::string& what, long code) const;

  /// Throws kIo with `problem` where `code` is below 0.
  void check(const std::string& what, long code) const;
};

/// Loads libfabric.so.1, which then stays: its providers may have threads.
///
/// Errors   kUnavailable, saying what to install.
Library load_library();

/// Closes an object of libfabric.
struct CloseObject {
  template <typename Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <typename Object>
using Owned = std::unique_ptr<Object, CloseObject>;

}  // namespace trireme::transport::internal
