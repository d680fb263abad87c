#pragma once

#include <vector>

namespace trireme::kernels {

/// Add the partial sum of `right` into that of `left`.
struct Merge {
  int left;
  int right;
  bool operator==(const Merge&) const = default;
};

/// THE order in which n partial sums are combined, on one device as over ranks: a balanced binary
/// tree that splits n items at the largest power of two below n. Merges in order; the result is in
/// item 0. Seven items:
///
///     0  1  2  3  4  5  6      0+1  2+3  4+5   0+2  4+6   0+4
///     +--+  +--+  +--+  |
///       +----+      +---+      (items 0..3, then 4..6 = (4+5)+6)
///          +----------+
///
/// If n = R * 2^k, the first k rounds merge within R groups of 2^k neighbours and the rest is
/// `tree_merges(R)` of the groups: why R ranks with 2^k lanes each get the bits of one rank.
///
/// num_items   at least 0, else kInvalidArgument. Cost n - 1 merges.
std::vector<Merge> tree_merges(int num_items);

/// The same tree for items that arrive one after another, in few buffers: a binary counter whose
/// buffer i holds a finished subtree.
///
///     for each lane: accumulate into buffer tree.next_buffer(); then for (Merge m : tree.push())
///     add_into(buffer m.left, buffer m.right)
///
/// After the last push the sum is in buffer 0. Caller-synchronised.
class LaneTree {
 public:
  /// num_lanes   at least 1, else kInvalidArgument.
  explicit LaneTree(int num_lanes);

  /// Buffers that `num_lanes` need: the most bits set below num_lanes, plus one, which is
  /// log2(num_lanes) + 1 for powers of two.
  static int num_buffers(int num_lanes);

  /// The buffer that the next lane is to be accumulated into; its old content is done with.
  int next_buffer() const { return static_cast<int>(sizes_.size()); }

  bool is_complete() const { return num_pushed_ == num_lanes_; }

  /// The lane in `next_buffer()` is finished: the merges that this makes possible, of buffers, in
  /// order. kInvalidArgument where all lanes were pushed.
  std::vector<Merge> push();

 private:
  int num_lanes_;
  int num_pushed_ = 0;
  std::vector<int> sizes_;  ///< Lanes in the subtree of each buffer in use.
};

}  // namespace trireme::kernels
