#pragma once

#include <memory>

#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/request.h"

namespace trireme::collectives {

/// The operations of a group by messages: a queue, and the thread that works through it.
class NetworkBackend final : public Backend {
 public:
  explicit NetworkBackend(const Members& members);
  ~NetworkBackend() override;

  transport::WorkPtr submit(Request request) override;
  std::span<std::byte> allocate(std::size_t bytes, std::chrono::milliseconds deadline) override;
  std::vector<int> missing() const override;

 private:
  class Queue;
  const std::unique_ptr<Queue> queue_;
};

}  // namespace trireme::collectives
