#pragma once

#include <span>
#include <string>
#include <vector>

namespace trireme::partition {

/// Elements in execution order, and the module that each belongs to.
struct WeighedModules {
  std::vector<std::string> modules;  ///< `decoder.3.attention`; empty: of none.
  std::vector<double> weights;       ///< As many, none negative.
};

/// Begins of stages, but the first: the tree of modules, dealt out from the root downwards.
///
/// A module that has several stages parts its children, in their order, into at most as many runs, so that the heaviest is
/// lightest. Stages go to the runs one by one, each to the one whose weight / (stages it has + 1) is largest (D'Hondt). A
/// run without a stage joins the one before it, or the one after where it is the first; one with several parts its children
/// again, or those of its only one. Two stages:
///
///     embedding 1, blocks 8, head 1    runs of 9 and 1    9 / 1 and 9 / 2 are more than 1 / 1: the first has both
///     embedding 1, blocks 8            runs of 1 and 8    8 / 1 and 8 / 2 are more than 1 / 1: the second has both
///     blocks: 4, 4                     runs of 4 and 4    one each: embedding and the first block; the second and the head
///
/// A run takes no more stages than it has elements, so that no stage is empty. Where one child has all the
/// weight, children count as equal.
///
/// num_stages   at most as many as there are elements.
/// Source       the partitioner of the SageMaker model parallel library (Karakus et al., arXiv 2111.05972, section 4),
///              whose devices may be visited several times; here stages are runs of the order.
std::vector<int> tree_cuts(const WeighedModules& tree, int num_stages);

}  // namespace trireme::partition
