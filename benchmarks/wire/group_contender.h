#pragma once

#include <map>
#include <optional>

#include "benchmarks/wire/contender.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::bench {

/// An algorithm that a group was told to take wherever it can.
struct Forced {
  collectives::Algorithm algorithm;
  collectives::Order order;
};

/// Our own collectives.
class GroupContender final : public Contender {
 public:
  /// group    outlives this.
  /// forced   what it cannot do is not run.
  explicit GroupContender(collectives::Group& group, std::optional<Forced> forced = std::nullopt)
      : group_(group), forced_(forced) {}

  int rank() const override { return group_.group_rank(); }
  int num_ranks() const override { return group_.size(); }
  std::optional<Prepared> prepare(const Case& one, const Buffers& buffers) override;
  std::optional<std::span<std::byte>> registered(std::size_t bytes) override;
  void barrier() override;

 private:
  std::function<transport::WorkPtr()> starter(const Case& one, const Buffers& buffers);
  bool can(const Case& one) const;
  void wait(const transport::WorkPtr& work) const;

  collectives::Group& group_;
  std::optional<Forced> forced_;
  std::map<std::size_t, std::span<std::byte>> registered_;  ///< By size; kept until the group ends.
};

}  // namespace trireme::bench
