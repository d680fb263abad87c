#include "trireme/kernels/reduce/tree.h"

#include <algorithm>
#include <bit>
#include <string>

#include "trireme/error.h"

namespace trireme::kernels {
namespace {

void merge_range(int begin, int end, std::vector<Merge>& merges) {
  const int count = end - begin;
  if (count < 2) return;
  const auto below = static_cast<unsigned>(count) - 1;
  const int middle = begin + static_cast<int>(std::bit_floor(below));
  merge_range(begin, middle, merges);
  merge_range(middle, end, merges);
  merges.push_back({begin, middle});
}

}  // namespace

std::vector<Merge> tree_merges(int num_items) {
  if (num_items < 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "cannot combine " + std::to_string(num_items) + " items");
  }
  std::vector<Merge> merges;
  merge_range(0, num_items, merges);
  return merges;
}

LaneTree::LaneTree(int num_lanes) : num_lanes_(num_lanes) {
  if (num_lanes < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "there must be at least one lane, got " + std::to_string(num_lanes));
  }
}

int LaneTree::num_buffers(int num_lanes) {
  int most = 0;
  // While lane i is accumulated, there is a subtree for each bit that is set in i.
  for (unsigned lane = 0; lane < static_cast<unsigned>(std::max(num_lanes, 0)); ++lane) {
    most = std::max(most, std::popcount(lane) + 1);
  }
  return most;
}

std::vector<Merge> LaneTree::push() {
  if (is_complete()) {
    throw Error(ErrorKind::kInvalidArgument,
                "all " + std::to_string(num_lanes_) + " lanes were pushed already");
  }
  ++num_pushed_;
  sizes_.push_back(1);
  std::vector<Merge> merges;
  // Equal neighbours make the subtree of twice the size, as carries do in a counter. At the end
  // what is left is combined from the right: the tree's splits at powers of two.
  while (sizes_.size() > 1 && (is_complete() || sizes_.back() == sizes_[sizes_.size() - 2])) {
    const int right = static_cast<int>(sizes_.size()) - 1;
    merges.push_back({right - 1, right});
    sizes_[right - 1] += sizes_[right];
    sizes_.pop_back();
  }
  return merges;
}

}  // namespace trireme::kernels
