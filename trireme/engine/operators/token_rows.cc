#include "trireme/engine/operators/token_rows.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <string>
#include <tuple>
#include <vector>

#include "trireme/engine/operators/kernel_operator.h"

namespace trireme::operators {
namespace {

using internal::Expect;

std::tuple<at::Tensor, at::Tensor> run(const at::Tensor& lengths, std::int64_t length) {
  const Expect expect("token_rows");
  expect.dtype("lengths", lengths, {at::kLong, at::kInt});
  expect.dims("lengths", lengths, 1);
  std::vector<std::int64_t> rows, offsets = {0};
  for (const std::int64_t own : internal::to_int64(lengths)) {
    const std::int64_t sequence = std::ssize(offsets) - 1;
    if (own < 0 || own > length) {
      expect.fail("lengths[" + std::to_string(sequence) + "] must be in [0, " +
                  std::to_string(length) + "], is " + std::to_string(own));
    }
    for (std::int64_t i = 0; i < own; ++i) rows.push_back(sequence * length + i);
    offsets.push_back(std::ssize(rows));
  }
  return {at::tensor(rows, at::kLong), at::tensor(offsets, at::kLong)};
}

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def("token_rows(Tensor lengths, SymInt length) -> (Tensor rows, Tensor offsets)",
              {at::Tag::dynamic_output_shape});
  library.impl("token_rows", internal::kernel_below_autograd(run));
}

}  // namespace

TokenRows token_rows(const at::Tensor& lengths, std::int64_t length) {
  using Run = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, c10::SymInt);
  static const auto op = internal::find_operator<Run>("trireme::token_rows");
  const auto [rows, offsets] = op.call(lengths, length);
  return {rows, offsets};
}

at::Tensor pack_rows(const at::Tensor& padded, const TokenRows& tokens) {
  return padded.flatten(0, 1).index_select(0, tokens.rows);
}

at::Tensor unpack_rows(const at::Tensor& packed, const TokenRows& tokens, const at::Tensor& like) {
  const at::Tensor empty =
      at::zeros_like(like, packed.options(), at::MemoryFormat::Contiguous).flatten(0, 1);
  return empty.index_copy(0, tokens.rows, packed).view_as(like);
}

}  // namespace trireme::operators
