#pragma once

#include <chrono>
#include <string>

namespace trireme::backend {

/// Where the ranks of a process group leave word for each other, also before they are connected.
/// Keys are theirs alone.
///
/// Threads  safe from any thread. All calls block.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;

  /// Waits until it is set; kTimeout, naming the key, after `deadline`.
  virtual std::string get(const std::string& key, std::chrono::milliseconds deadline) = 0;

  /// Address of this process at which the other ranks can reach it.
  virtual std::string own_host(std::chrono::milliseconds deadline) const = 0;
};

}  // namespace trireme::backend
