#pragma once

#include <cstdint>
#include <string>

#include "packs/text/data/pair_source.h"
#include "packs/text/data/word_pieces.h"
#include "recipes/bert/model.h"

namespace trireme::recipes::bert {

/// For people: a few samples, spread over the source, with what the model takes hidden tokens for:
///
///     sample 40: the second part follows (the model: 0.93)
///       | [CLS] the cat [MASK] on the mat . [SEP] it [MASK] . [SEP]
///       sat: sat 0.41, was 0.12, lay 0.08
///
/// num_samples   as many, at most those that the source has.
std::string show_predictions(Bert model, const text::PairSource& source,
                             const text::WordPieces& pieces, std::int64_t num_samples);

/// The token that is hidden most often, and how often: how good a guess is that knows no text.
///
///     of 19042 hidden tokens 5.6 % are 'the'
///
/// num_samples   looked at, from the first on, at most those that there are.
std::string show_most_frequent(const text::PairSource& source, const text::WordPieces& pieces,
                               std::int64_t num_samples);

}  // namespace trireme::recipes::bert
