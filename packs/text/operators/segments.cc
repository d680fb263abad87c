#include "packs/text/operators/segments.h"

#include <ATen/Functions.h>

#include <limits>

namespace trireme::text {

double no_attention() { return std::numeric_limits<float>::lowest() / 2; }

at::Tensor segment_bias(const at::Tensor& queries_BT, const at::Tensor& keys_BS) {
  const at::Tensor is_apart_BTS = queries_BT.unsqueeze(2).ne(keys_BS.unsqueeze(1));
  return is_apart_BTS.to(at::kFloat).mul(no_attention()).unsqueeze(1);
}

at::Tensor segment_offsets(const at::Tensor& lengths_BM, std::int64_t row_length) {
  const at::Tensor own_BM = lengths_BM.to(at::kLong);
  const at::Tensor rest_B1 = own_BM.sum(1, /*keepdim=*/true).neg().add(row_length);
  const at::Tensor ends = at::cat({own_BM, rest_B1}, 1).flatten().cumsum(0);
  return at::constant_pad_nd(ends, {1, 0});
}

}  // namespace trireme::text
