#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "python/backend/rendezvous.h"

namespace trireme::backend {

/// A store of torch: TCPStore, FileStore, or another.
class StoreRendezvous final : public Rendezvous {
 public:
  explicit StoreRendezvous(c10::intrusive_ptr<c10d::Store> store);

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::milliseconds deadline) override;

  /// The address that leads to a TCPStore; the loopback of a store that has none.
  std::string own_host(std::chrono::milliseconds deadline) const override;

 private:
  const c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace trireme::backend
