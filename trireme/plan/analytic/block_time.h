#pragma once

#include "trireme/plan/analytic/achieved.h"
#include "trireme/plan/analytic/group_time.h"
#include "trireme/plan/analytic/model_shape.h"
#include "trireme/plan/analytic/train_layout.h"

namespace trireme::analytic {

/// Seconds of one microbatch in one block, or beside the blocks, on one rank of a tensor group.
struct BlockTime {
  double forward_s = 0;        ///< Of compute.
  double backward_s = 0;       ///< Likewise, both gradients.
  double recompute_s = 0;      ///< Of the forward that is run again in the backward.
  double forward_comm_s = 0;   ///< Of collectives that compute waits for.
  double backward_comm_s = 0;  ///< And those that are run again.
  double gather_s =
      0;  ///< Of parameters of which replicas have parts, beside compute, once a forward or backward.
  double scatter_s = 0;  ///< Of their gradients, once a backward.

  bool operator==(const BlockTime&) const = default;
};

/// Product of M x K and K x N.
struct MatrixProduct {
  double m = 0, n = 0, k = 0;
  double elements =
      m * k + n * k + m * n;  ///< Read and written; a convolution reads its image once.
};

/// What blocks of a model take on a device of a layout.
class BlockTimes {
 public:
  /// shape, layout   pass `check`.
  BlockTimes(const ModelShape& shape, const Machine& machine, const TrainLayout& layout,
             const AchievedParts& achieved);

  /// Block `index` of the model.
  BlockTime block(std::int64_t index) const;

  /// Head and loss, which come after the last block; of ResNet, the linear layer.
  BlockTime head() const;

  /// Optimizer step of so many parameters of a rank.
  double update_s(double num_parameters) const;

  /// Seconds of a product: the fastest of a few sizes of tiles in whole waves over the device's units, a part of the
  /// peak, and a launch; or as long as its operands take to be read and written.
  double product_s(const MatrixProduct& product, double flops) const;

 private:
  BlockTime transformer_block(bool is_decoder) const;
  BlockTime residual_block(int index) const;
  void add_product(BlockTime& time, const MatrixProduct& product, double flops) const;
  void add_attention(BlockTime& time, double queries, double keys) const;
  void add_feed_forward(BlockTime& time, double tokens) const;
  void add_small_operators(BlockTime& time, double tokens, bool is_decoder) const;
  void add_collectives(BlockTime& time, double tokens, bool is_decoder) const;
  void add_sharding(BlockTime& time, double num_parameters) const;
  void add_recompute(BlockTime& time, double products_s, double score_s) const;
  double memory_s(double bytes) const { return bytes / memory_rate_; }
  double score_bytes_s(double queries, double keys) const;

  ModelShape shape_;
  Machine machine_;
  TrainLayout layout_;
  AchievedParts achieved_;
  GroupTimes groups_;
  double tensor_ = 1;       ///< Ranks of a tensor group.
  double matrix_rate_ = 1;  ///< FLOP/s of products in the layout's type.
  double half_rate_ = 1;    ///< Of 16 bits, or f32.
  double memory_rate_ = 1;
  double element_bytes_ = 2;
};

}  // namespace trireme::analytic
