#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/descriptor.h"

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

/// One endpoint of libfabric that sends to and receives from all ranks (FI_EP_RDM), by tagged
/// messages, the one path that every provider has. Memory needs no registration by us.
///
/// Errors   kIo with libfabric's reason.
/// Threads  caller-synchronised (FI_THREAD_DOMAIN).
class Fabric {
 public:
  /// The end of what was posted with `context`, well if `problem` is empty.
  struct Completion {
    void* context;  ///< Null where the provider does not know whose problem it is.
    std::size_t num_bytes;
    std::string problem;
  };

  /// provider   `efa`, `verbs;ofi_rxm`, `tcp;ofi_rxm`.
  /// host       local address to use, where the provider is one for addresses of IP.
  /// Errors     kUnavailable where there is no such provider here.
  Fabric(const std::string& provider, const std::string& host, int world_size);

  /// As `settle`. Memory that was lent is not written afterwards: the endpoint is closed, or, where
  /// a provider without a device holds on to it, left open for ever.
  ~Fabric();

  /// What others need to reach it; bytes.
  std::string address() const;

  /// addresses   of all ranks, by rank.
  void add_ranks(std::span<const std::string> addresses);

  /// Longest message.
  std::size_t max_bytes() const { return info_->ep_attr->max_msg_size; }

  // Posts a message of at most `max_bytes`; false: not now, later. Its memory is lent until the
  // completion.
  bool post_send(int rank, std::uint64_t tag, std::span<const std::byte> data, void* context);
  bool post_recv(std::uint64_t tag, std::span<std::byte> memory, void* context);

  /// Goes on; `handle` gets what has ended since.
  void progress(const std::function<void(const Completion&)>& handle);

  /// Lets what is under way end, for up to 100 ms, and takes back what waits to be received, for up
  /// to 100 ms; sends stay. Nothing is to be posted afterwards.
  ///
  /// Returns  whether all that is received has ended: its memory is free, though this is open.
  bool settle();

  /// Readable where `progress` has something to do; not open where the provider (efa) cannot tell.
  const Descriptor& descriptor() const { return descriptor_; }

  /// Asked right before waiting for the descriptor: whether that is not in vain.
  bool may_wait();

 private:
  struct FreeInfo {
    decltype(&::fi_freeinfo) free;
    void operator()(fi_info* info) const { free(info); }
  };
  using Info = std::unique_ptr<fi_info, FreeInfo>;

  /// A message under way; its address is libfabric's context.
  struct Posted {
    void* context;
    bool is_receive;
    bool has_failed = false;
    std::list<Posted>::iterator place{};
  };

  Info make_hints(const std::string& provider) const;
  void choose(const std::string& provider, const std::string& host);
  void open_queue(int world_size);
  Posted& add_posted(void* context, bool is_receive);
  bool is_posted(const std::string& what, ssize_t code, Posted& posted);
  Completion ended(const fi_cq_msg_entry& entry);
  Completion failed_one();
  void drain(std::chrono::milliseconds patience, const std::function<bool()>& has_more);
  bool has_posted() const;
  bool has_receives() const;
  bool moves_by_itself() const;
  void leave_open();

  const Library library_;
  Info info_;

  std::list<Posted> posted_;  ///< Outlives the endpoint, which may look at it until it is closed.

  // Closed in the reverse order, as libfabric demands.
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> addresses_;
  Owned<fid_cq> queue_;
  Owned<fid_ep> endpoint_;

  Descriptor descriptor_;
  std::vector<fi_addr_t> ranks_;
  bool is_settled_ = false;
};

}  // namespace trireme::transport::internal
