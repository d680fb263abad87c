#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace trireme::text {

// What keeps the samples of packed rows (data::pack) apart in attention. Dims: B rows, T queries, S keys, M samples of a row at most.

/// What scores of attention get where a query must not see a key: so low that nothing of the key is left, and finite in f32 and
/// bf16 even with the score added, so that a query that sees no key makes no NaN.
double no_attention();

/// For attention that adds a bias to its scores: 0 where a query and a key are of one sample, else no_attention(). Padding attends
/// to padding; queries of a sample that the keys do not have take the mean of all.
///
/// queries_BT, keys_BS   integers, `N_segments` of the rows: of one field twice, or of targets and inputs; B may be 1 of one, the
///                       same for all rows.
/// Returns               f32 [B, 1, T, S].
at::Tensor segment_bias(const at::Tensor& queries_BT, const at::Tensor& keys_BS);

/// For packed_attention over the tokens of all rows, [B x S, H, D]: where each sample begins, the padding of a row as a last one.
/// The number of sequences is the same for all batches, M + 1 a row; the others are empty.
///
/// lengths_BM   integers, `N_lengths` of the rows.
/// row_length   S.
/// Returns      i64 [B (M + 1) + 1].
at::Tensor segment_offsets(const at::Tensor& lengths_BM, std::int64_t row_length);

}  // namespace trireme::text
