#include "python/backend/store_rendezvous.h"

#include <c10/util/Exception.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/system/socket.h"

namespace trireme::backend {

StoreRendezvous::StoreRendezvous(c10::intrusive_ptr<c10d::Store> store)
    : store_(std::move(store)) {}

void StoreRendezvous::set(const std::string& key, const std::string& value) {
  store_->set(key, value);
}

std::string StoreRendezvous::get(const std::string& key, std::chrono::milliseconds deadline) {
  try {
    store_->wait({key}, deadline);
  } catch (const c10::Error& error) {
    throw Error(ErrorKind::kTimeout, "no rank has set '" + key + "' in torch's store within " +
                                         std::to_string(deadline.count()) +
                                         " ms: " + error.what_without_backtrace());
  }
  return store_->get_to_str(key);
}

std::string StoreRendezvous::own_host(std::chrono::milliseconds deadline) const {
  const c10d::Store* store = store_.get();
  c10::intrusive_ptr<c10d::Store> inner;
  if (auto* prefixed = dynamic_cast<c10d::PrefixStore*>(store_.get())) {
    inner = prefixed->getUnderlyingNonPrefixStore();
    store = inner.get();
  }
  const auto* tcp = dynamic_cast<const c10d::TCPStore*>(store);
  if (tcp == nullptr) return "127.0.0.1";
  const transport::Address address{tcp->getHost(), tcp->getPort()};
  return transport::local_address(transport::connect_to(address, {.deadline = deadline})).host;
}

}  // namespace trireme::backend
