#pragma once

#include <vector>

#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::simulate {

/// By replica, the first one that does in a step what this one does, at the same times: itself where there is none
/// before it. One of them tells what all do.
///
/// Replicas are alike where
///
///  * the same of their positions are on one host, so that messages go over the same kinds of links;
///  * each rank updates as many elements;
///  * their ranks compete for cores in the same way: with each other, or with those of other replicas; then these are
///    alike too, each with its counterpart.
///
/// Where ranks run several replicas, and where they share links, each is alike to itself alone: who waits for whom, and who is under way at once, is known when they have been played.
///
/// plan, map, topology   of a forecast.
/// Cost                  slots x replicas, ranks x their logarithm.
std::vector<int> alike_replicas(const layout::Plan& plan, const layout::ParameterMap& map,
                                const topology::Topology& topology);

/// By world rank, the rank at its position in the replica of `alike_replicas`; itself where it does not train.
std::vector<int> alike_ranks(const layout::Plan& plan, const std::vector<int>& replicas);

}  // namespace trireme::simulate
