#pragma once

#include <cstdint>
#include <initializer_list>

#include "trireme/plan/graph/graph.h"

namespace trireme::record {

// Packed sequences: tensors with as many rows as the sequences of a microbatch have steps together.
// Two microbatches differ in that, and torch's recurrent layers take it as it comes.

inline constexpr const char* kPack = "aten::_pack_padded_sequence";
inline constexpr const char* kPad = "aten::_pad_packed_sequence";

/// Marks the results of packing and what is made of them with as many rows or batch sizes as
/// `Value::is_ragged`, and gives them the first dimension that they have where all sequences are as
/// long as the padded input.
///
/// graph   of one recording, its sizes fixed.
void mark_ragged(graph::Graph& graph);

/// Makes the padding of packed sequences an operator of ours. It fails where the longest sequence is
/// not as long as the result was when recorded: padded to that length, as a total_length given by
/// the program would have it, the result would differ from the model's. Unless such a length was
/// given, which shows where the longest sequence was shorter.
///
/// longest   number of steps of the longest sequence.
void take_padded_length(graph::Node& pad, std::int64_t longest);

/// What one recording of a model shows of given lengths holds for all.
///
/// Errors   SizeProblem where recordings pad to other lengths.
void agree_on_padded_lengths(std::initializer_list<graph::Graph*> recordings);

}  // namespace trireme::record
