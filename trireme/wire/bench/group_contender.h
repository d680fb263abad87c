#pragma once

#include <map>

#include "trireme/wire/bench/contender.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::bench {

/// Our own collectives.
class GroupContender final : public Contender {
 public:
  /// group   outlives this.
  explicit GroupContender(collectives::Group& group) : group_(group) {}

  int rank() const override { return group_.group_rank(); }
  int num_ranks() const override { return group_.size(); }
  std::optional<Prepared> prepare(const Case& one, const Buffers& buffers) override;
  std::optional<std::span<std::byte>> registered(std::size_t bytes) override;
  void barrier() override;

 private:
  std::function<void()> runner(const Case& one, const Buffers& buffers);
  void wait(const transport::WorkPtr& work) const;

  collectives::Group& group_;
  std::map<std::size_t, std::span<std::byte>> registered_;  ///< By size; kept until the group ends.
};

}  // namespace trireme::bench
