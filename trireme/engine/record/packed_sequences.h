#pragma once

#include <cstdint>
#include <span>

#include "trireme/plan/graph/graph.h"

namespace trireme::record {

// Packed sequences: tensors with as many rows as the sequences of a microbatch have steps together.
// Two microbatches differ in that, and torch's recurrent layers take it as it comes. So do models that
// compute on the tokens of padded sequences alone (engine/operators/token_rows.h).

inline constexpr const char* kPack = "aten::_pack_padded_sequence";
inline constexpr const char* kPad = "aten::_pad_packed_sequence";
inline constexpr const char* kTokenRows = "trireme::token_rows";

/// Makes the padding of packed sequences an operator of ours. It fails where the longest sequence is
/// not as long as the result was when recorded: padded to that length, as a total_length given by
/// the program would have it, the result would differ from the model's. Unless such a length was
/// given, which shows where the longest sequence was shorter.
///
/// longest   number of steps of the longest sequence.
void take_padded_length(graph::Node& pad, std::int64_t longest);

/// Whether a length may have been given or may follow the longest sequence: more recordings tell.
bool has_unsure_lengths(const graph::Graph& graph);

// Below, `recordings` are of one model, their sizes fixed. Where they differ in their operators
// nothing happens: that is told elsewhere.

/// What one recording shows of given lengths holds for all.
///
/// Errors   SizeProblem where recordings pad to other lengths.
void agree_on_padded_lengths(std::span<graph::Graph* const> recordings);

/// Marks the results of packing and rows of tokens, and what is made of them, as `Value::is_ragged` where a dimension is
/// the number of their rows (or of their batch sizes) in every recording, and makes that what it is
/// where all sequences are as long as the padded input.
void mark_ragged(std::span<graph::Graph* const> recordings);

}  // namespace trireme::record
