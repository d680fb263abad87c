#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/range.h"

namespace trireme::data {

/// `words 57, frames 200`, for messages.
std::string lengths_text(const Lengths& lengths);

/// Index of the first of `padded` that holds `lengths`.
///
/// padded   Source::padded_lengths(), not empty.
/// Errors   kInvalidArgument where a length is missing or none holds it.
int padded_index(const std::vector<Lengths>& padded, const Lengths& lengths);

/// Proves of a source with `padded_lengths()` what readers rely on: all have the same names, each of which some field has; none is
/// shorter than the one before, nor the same; the last are the lengths of the fields.
///
/// Errors   kInvalidArgument, naming the field or length.
void check_padding(const Source& source);

/// In which order a step takes its samples so that little is padded and lanes have like work: sorted by padded length, longest
/// first, cut into microbatches, these dealt to the lanes forth and back. A step has the same samples as without; neither
/// ranks nor stages matter.
///
/// padded     of each of the step's B samples, in their order (`padded_index`).
/// num_lanes  divides B/b.
/// Returns    for each of the B places the index of its sample.
std::vector<std::int64_t> dealt_by_length(const std::vector<int>& padded, const BatchNumbers& batch,
                                          std::int64_t num_lanes);

/// Copies a sample's field, dense at `shape`, to the front of `destination`, dense at `padded_shape`, all else
/// filled with `field.padding`.
///
/// Errors   kInvalidArgument where the field's dtype cannot hold the padding.
void pad(const Field& field, std::span<const std::byte> sample,
         const std::vector<std::int64_t>& shape, std::span<std::byte> destination,
         const std::vector<std::int64_t>& padded_shape);

}  // namespace trireme::data
