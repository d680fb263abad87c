#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace trireme::operators {

/// Where the tokens of padded sequences lie, for models that compute on tokens alone.
struct TokenRows {
  at::Tensor rows;     ///< [tokens] i64, ascending: b * length + i of the i-th token of sequence b.
  at::Tensor offsets;  ///< [B + 1] i64: sequence b has the tokens offsets[b] .. offsets[b + 1].
};

/// The number of rows depends on data: a recording marks them, and what is made of them, as ragged
/// (Value::is_ragged), and a plan is not cut between them and their last use.
///
/// lengths   [B] i32 or i64, each in [0, length].
/// length    of the padded sequences.
/// Errors    kInvalidArgument, naming the sequence whose length is outside.
TokenRows token_rows(const at::Tensor& lengths, std::int64_t length);

/// The rows of tokens of `padded`, [B, length, ...] -> [tokens, ...].
at::Tensor pack_rows(const at::Tensor& padded, const TokenRows& tokens);

/// The inverse: `packed`, [tokens, ...], in the sizes of `like`, [B, length, ...]; padding is 0.
at::Tensor unpack_rows(const at::Tensor& packed, const TokenRows& tokens, const at::Tensor& like);

}  // namespace trireme::operators
