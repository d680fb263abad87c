#pragma once

#include <torch/types.h>

#include "trireme/engine/operators/token_rows.h"

namespace trireme::recipes::bert {

// Dims: B batch, S positions, C channels, N rows: B x S, or of the unpadded model the tokens alone.

/// Which rows of a batch a stack of layers computes on: all, or tokens alone.
///
/// Layers that treat rows alike take [N, C]. What crosses a cut of a plan must have a shape that
/// does not depend on data: so a block packs its input and pads its output.
class TokenView {
 public:
  /// lengths_B   tokens of each sequence, padding behind them.
  TokenView(const torch::Tensor& lengths_B, std::int64_t length, bool is_unpadded)
      : lengths_B_(lengths_B) {
    if (is_unpadded) tokens_ = operators::token_rows(lengths_B, length);
  }

  bool is_unpadded() const { return tokens_.rows.defined(); }

  /// [B, S, ..] -> [N, ..].
  torch::Tensor pack(const torch::Tensor& x) const {
    return is_unpadded() ? operators::pack_rows(x, tokens_) : x.flatten(0, 1);
  }

  /// [N, ..] -> the sizes of `like`, [B, S, ..].
  torch::Tensor unpack(const torch::Tensor& x, const torch::Tensor& like) const {
    return is_unpadded() ? operators::unpack_rows(x, tokens_, like) : x.view_as(like);
  }

  const torch::Tensor& lengths() const { return lengths_B_; }
  const torch::Tensor& offsets() const { return tokens_.offsets; }

 private:
  torch::Tensor lengths_B_;
  operators::TokenRows tokens_;
};

}  // namespace trireme::recipes::bert
