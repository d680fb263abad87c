#pragma once

#include <string>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::profile {

/// The profile as tables for people: hardware; the distinct nodes that take most time, with how
/// often they occur, what they keep and how much their times spread; measured ranges against the
/// sums of their nodes; links; costs of the step.
///
/// profile   one that passes `check` against `recorded`.
std::string show(const Profile& profile, const graph::Graph& recorded);

/// What can be said without the graph: hardware, links, costs of the step. Any profile is safe to
/// pass in.
std::string show(const Profile& profile);

}  // namespace trireme::profile
