#pragma once

#include <cstdint>
#include <string>

#include "packs/text/data/labelled_pair_source.h"
#include "packs/text/data/pair_source.h"
#include "packs/text/data/word_pieces.h"
#include "recipes/bert/classifier.h"
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

/// How long samples are, and how good a guess of hidden tokens is that knows no text: the one that is
/// hidden most often.
///
///     302 samples have 96.3 of 128 tokens on average; of 4410 hidden tokens 6.32 % are 'the'
///
/// num_samples   looked at, from the first on, at most those that there are.
std::string show_statistics(const text::PairSource& source, const text::WordPieces& pieces,
                            std::int64_t num_samples);

/// The same for pairs with labels: what they are, and how likely the model finds each label.
///
///     sample 0: neutral (the model: neutral 0.61, entailment 0.32, contradiction 0.07)
///       | [CLS] the cat sat . [SEP] it sat on a mat . [SEP]
std::string show_classes(Classifier model, const text::LabelledPairSource& source,
                         const text::WordPieces& pieces, std::int64_t num_samples);

}  // namespace trireme::recipes::bert
