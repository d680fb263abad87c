#include "trireme/engine/train/rank_groups.h"

#include <algorithm>
#include <string>

#include "trireme/base/check.h"

namespace trireme::train {
namespace {

using schedule::GroupKind;

std::string name_of(const schedule::RankGroup& group) {
  if (group.kind == GroupKind::kWorld) return "world";
  return (group.kind == GroupKind::kData ? "data " : "pipeline ") + std::to_string(group.index);
}

}  // namespace

Groups make_groups(const schedule::StepProgram& program, const collectives::World& world) {
  Groups groups;
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    const schedule::RankGroup& group = program.groups[g];
    const auto& ranks = group.ranks;
    if (std::find(ranks.begin(), ranks.end(), world.rank()) == ranks.end()) continue;
    groups[static_cast<int>(g)] = std::make_unique<collectives::Group>(
        world.endpoint, ranks,
        collectives::GroupOptions{.name = name_of(group),
                                  .id = g,
                                  .deadline = world.watch.deadline,
                                  .logger = world.watch.logger,
                                  .costs = world.costs});
  }
  return groups;
}

collectives::Group& group_of(const schedule::StepProgram& program, const Groups& groups,
                             GroupKind kind) {
  for (const auto& [index, group] : groups) {
    if (program.groups[index].kind == kind) return *group;
  }
  TRIREME_CHECK(false, "the rank is in no group of the kind");
}

}  // namespace trireme::train
