#pragma once

#include <memory>
#include <vector>

#include "trireme/wire/collectives/backend.h"
#include "trireme/wire/collectives/members.h"

namespace trireme::collectives {

class HostQueue;

/// The operations of a group whose ranks are all on one host.
///
/// Whoever has time goes on with the first operation of the queue: the thread that calls it, as
/// long as the others are quick; the thread that waits for it; else one of the backend's own. So a
/// small operation costs no change of threads, and a large one goes on while its caller computes.
///
/// The leader (group rank 0) makes the arena and hands it to the others when its first operation
/// runs; they take it when theirs does.
class HostBackend final : public Backend {
 public:
  /// members   must share memory.
  explicit HostBackend(const Members& members);
  ~HostBackend() override;

  transport::WorkPtr submit(Request request) override;
  std::span<std::byte> allocate(std::size_t bytes, std::chrono::milliseconds deadline) override;
  std::vector<int> missing() const override;

 private:
  const std::shared_ptr<HostQueue> queue_;  // shared with works, which may outlive the group
};

}  // namespace trireme::collectives
