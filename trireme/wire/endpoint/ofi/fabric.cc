#include "trireme/wire/endpoint/ofi/fabric.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "trireme/error.h"

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

namespace {

// Of libfabric's interface: what is used here has not changed since.
constexpr std::uint32_t kVersion = FI_VERSION(1, 9);

// At the end: for messages under way to end by themselves, then for what could not be taken back,
// and how often that is looked for.
constexpr std::chrono::milliseconds kFinishing{100};
constexpr std::chrono::milliseconds kSettling{100};
constexpr std::chrono::microseconds kSettlingStep{100};

/// What it points to is never destroyed.
template <typename Pointer>
void leave(Pointer pointer) {
  [[maybe_unused]] const auto* left = pointer.release();
}

}  // namespace

Fabric::Fabric(const std::string& provider, const std::string& host, int world_size)
    : library_(load_library()), info_(nullptr, FreeInfo{library_.freeinfo}) {
  choose(provider, host);
  fid_fabric* fabric = nullptr;
  library_.check("open " + provider, library_.fabric(info_->fabric_attr, &fabric, nullptr));
  fabric_.reset(fabric);

  fid_domain* domain = nullptr;
  library_.check("open a domain", fi_domain(fabric, info_.get(), &domain, nullptr));
  domain_.reset(domain);

  fi_av_attr table{};
  table.type = FI_AV_TABLE;
  table.count = static_cast<std::size_t>(world_size);
  fid_av* addresses = nullptr;
  library_.check("open a table of addresses", fi_av_open(domain, &table, &addresses, nullptr));
  addresses_.reset(addresses);

  open_queue(world_size);

  fid_ep* endpoint = nullptr;
  library_.check("open an endpoint", fi_endpoint(domain, info_.get(), &endpoint, nullptr));
  endpoint_.reset(endpoint);
  library_.check("bind the addresses", fi_ep_bind(endpoint, &addresses->fid, 0));
  library_.check("bind the queue", fi_ep_bind(endpoint, &queue_->fid, FI_SEND | FI_RECV));
  library_.check("enable an endpoint", fi_enable(endpoint));
}

Fabric::~Fabric() {
  // To close it would end the process, or move what still arrives into memory that was given back.
  // Left open it does neither: this provider moves only when it is called. Its descriptors are
  // lost.
  if (!settle() && !moves_by_itself()) leave_open();
}

Fabric::Info Fabric::make_hints(const std::string& provider) const {
  Info hints(library_.dupinfo(nullptr), FreeInfo{library_.freeinfo});
  if (!hints) throw Error(ErrorKind::kResourceExhausted, "no memory for libfabric");
  hints->caps = FI_TAGGED;
  hints->ep_attr->type = FI_EP_RDM;
  // Registration of the peers' memory for RMA, which we do not use; FI_MR_LOCAL is left out.
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());  // freed with the hints
  return hints;
}

void Fabric::choose(const std::string& provider, const std::string& host) {
  const Info hints = make_hints(provider);
  // The addresses of efa are not of IP: its device is the one that there is.
  const bool has_host = provider != "efa";
  fi_info* found = nullptr;
  const int code = library_.getinfo(kVersion, has_host ? host.c_str() : nullptr, nullptr,
                                    has_host ? FI_SOURCE : 0, hints.get(), &found);
  info_.reset(found);
  if (code == 0) return;
  throw Error(ErrorKind::kUnavailable,
              library_.problem("use " + provider + (has_host ? " at " + host : ""), code) +
                  "; `fi_info -p '" + provider +
                  "'` says what there is; TRIREME_OFI_PROVIDER names another provider, "
                  "TRIREME_HOST or TRIREME_INTERFACE another address");
}

void Fabric::open_queue(int world_size) {
  // Each rank of a world may have some messages under way, large ones, at a time.
  constexpr std::size_t kPerRank = 64;
  fi_cq_attr attributes{};
  attributes.size = std::max<std::size_t>(1024, kPerRank * static_cast<std::size_t>(world_size));
  attributes.format = FI_CQ_FORMAT_MSG;
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  int code = fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
  if (code == 0) {
    queue_.reset(queue);
    int number = -1;
    library_.check("wait for a queue", fi_control(&queue->fid, FI_GETWAIT, &number));
    descriptor_ = Descriptor(fcntl(number, F_DUPFD_CLOEXEC, 0));  // that one stays libfabric's
    return;
  }
  attributes.wait_obj = FI_WAIT_NONE;
  code = fi_cq_open(domain_.get(), &attributes, &queue, nullptr);
  library_.check("open a queue", code);
  queue_.reset(queue);
}

std::string Fabric::address() const {
  std::array<char, 256> bytes{};
  std::size_t size = bytes.size();
  library_.check("name an endpoint", fi_getname(&endpoint_->fid, bytes.data(), &size));
  return {bytes.data(), size};
}

void Fabric::add_ranks(std::span<const std::string> addresses) {
  for (const std::string& address : addresses) {
    fi_addr_t number = FI_ADDR_UNSPEC;
    const int count = fi_av_insert(addresses_.get(), address.data(), 1, &number, 0, nullptr);
    if (count != 1) {
      throw Error(ErrorKind::kIo,
                  library_.problem("take the address of rank " + std::to_string(ranks_.size()),
                                   count < 0 ? count : -FI_EINVAL));
    }
    ranks_.push_back(number);
  }
}

bool Fabric::post_send(int rank, std::uint64_t tag, std::span<const std::byte> data,
                       void* context) {
  const fi_addr_t address = ranks_.at(static_cast<std::size_t>(rank));
  Posted& posted = add_posted(context, false);
  return is_posted(
      "send", fi_tsend(endpoint_.get(), data.data(), data.size(), nullptr, address, tag, &posted),
      posted);
}

bool Fabric::post_recv(std::uint64_t tag, std::span<std::byte> memory, void* context) {
  Posted& posted = add_posted(context, true);
  return is_posted("receive",
                   fi_trecv(endpoint_.get(), memory.data(), memory.size(), nullptr, FI_ADDR_UNSPEC,
                            tag, 0, &posted),
                   posted);
}

Fabric::Posted& Fabric::add_posted(void* context, bool is_receive) {
  posted_.push_back({.context = context, .is_receive = is_receive});
  posted_.back().place = std::prev(posted_.end());
  return posted_.back();
}

bool Fabric::is_posted(const std::string& what, ssize_t code, Posted& posted) {
  if (code < 0) posted_.erase(posted.place);
  if (code == -FI_EAGAIN) return false;
  library_.check(what, code);
  return true;
}

void Fabric::progress(const std::function<void(const Completion&)>& handle) {
  std::array<fi_cq_msg_entry, 16> entries{};
  while (true) {
    const ssize_t count = fi_cq_read(queue_.get(), entries.data(), entries.size());
    if (count == -FI_EAGAIN || count == 0) return;
    if (count == -FI_EAVAIL) {
      handle(failed_one());
      continue;
    }
    library_.check("read its queue", count);
    for (ssize_t i = 0; i < count; ++i) handle(ended(entries[i]));
  }
}

Fabric::Completion Fabric::ended(const fi_cq_msg_entry& entry) {
  const auto place = static_cast<Posted*>(entry.op_context)->place;
  void* const context = place->context;
  posted_.erase(place);
  return {context, entry.len, ""};
}

Fabric::Completion Fabric::failed_one() {
  fi_cq_err_entry entry{};
  library_.check("say what failed", fi_cq_readerr(queue_.get(), &entry, 0));
  auto* const posted = static_cast<Posted*>(entry.op_context);
  // It stays, as providers may report an error twice.
  if (posted != nullptr) posted->has_failed = true;
  return {posted == nullptr ? nullptr : posted->context, 0,
          library_.problem("move a message", -entry.err)};
}

// The provider rxm (1.17 and others) closes a connection first and then looks at what has arrived
// over it: an announcement of a large message that a receive waits for it answers over the closed
// connection, and the process ends. So nothing may wait for messages, and all that has arrived must
// have been looked at, when the endpoint is closed.
bool Fabric::settle() {
  if (!endpoint_) return true;
  if (is_settled_ && has_receives()) return false;  // nothing may move any more
  const bool is_first = !std::exchange(is_settled_, true);
  try {
    // All sides do so: what has been accepted mostly ends, also what others still fetch from here.
    if (is_first) drain(kFinishing, [this] { return has_posted(); });
    for (Posted& posted : posted_) {
      if (posted.is_receive) fi_cancel(&endpoint_->fid, &posted);
    }
    drain(kSettling, [this] { return has_receives(); });
  } catch (const Error&) {
    return !has_receives();  // there is nothing more to be had from the queue
  }
  return !has_receives();
}

/// Goes on while `has_more` says so or there is something to look at, for `patience` at most.
void Fabric::drain(std::chrono::milliseconds patience, const std::function<bool()>& has_more) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    bool has_moved = false;
    progress([&](const Completion&) { has_moved = true; });
    if (has_moved) continue;
    if (!has_more() && (!descriptor_.is_open() || may_wait())) return;
    std::this_thread::sleep_for(kSettlingStep);
  }
}

bool Fabric::has_posted() const {
  return std::ranges::any_of(posted_, [](const Posted& posted) { return !posted.has_failed; });
}

bool Fabric::has_receives() const {
  return std::any_of(posted_.begin(), posted_.end(),
                     [](const Posted& posted) { return posted.is_receive && !posted.has_failed; });
}

/// Whether a device reads and writes memory also while nobody calls the provider.
bool Fabric::moves_by_itself() const {
  return !std::string_view(info_->fabric_attr->prov_name).starts_with("tcp");
}

void Fabric::leave_open() {
  // libfabric keeps pointers to what is posted, and all its objects point to each other.
  leave(std::make_unique<std::list<Posted>>(std::move(posted_)));
  leave(std::move(endpoint_));
  leave(std::move(queue_));
  leave(std::move(addresses_));
  leave(std::move(domain_));
  leave(std::move(fabric_));
}

bool Fabric::may_wait() {
  fid* queue = &queue_->fid;
  return fi_trywait(fabric_.get(), &queue, 1) == FI_SUCCESS;
}

}  // namespace trireme::transport::internal
