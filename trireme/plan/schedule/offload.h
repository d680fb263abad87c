#pragma once

#include <vector>

#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

/// A microbatch whose kept tensors are in a file between its forward and its backward. Numbers are
/// places in a rank's actions.
///
///     F0 offload F1 F2 .. prefetch B1' F3 fetch B0
struct OffloadedMicrobatch {
  int forward = 0;   ///< After it, and its sends, they are written.
  int prefetch = 0;  ///< Before it, and its recvs, the system is asked to have them in memory.
  int backward = 0;  ///< B or I. Before it, after its recvs, they are read.
};

/// Actions before a backward that the file's pages are asked for.
inline constexpr int kPrefetchedAhead = 2;

/// Those of a rank, by place of their forwards: of the stages that offload, where more than
/// `kPrefetchedAhead` actions lie from the forward to the backward.
///
/// offloads   by stage.
/// Cost       number of actions.
std::vector<OffloadedMicrobatch> find_offloads(const std::vector<Action>& actions,
                                               const std::vector<bool>& offloads);

}  // namespace trireme::schedule
