#pragma once

#include <cstdint>
#include <memory>

#include "packs/text/data/labelled_pair_source.h"
#include "packs/text/data/word_pieces.h"
#include "recipes/bert/config.h"
#include "recipes/options/classify_options.h"
#include "trireme/model.h"

namespace trireme::recipes::bert {

/// Pairs to be classified, and held-out ones, if any.
struct ClassifyData {
  text::WordPieces pieces;
  std::shared_ptr<const text::LabelledPairSource> training;
  std::shared_ptr<const text::LabelledPairSource> held_out;  ///< With the labels of `training`.
};

/// length   tokens of a sample at most.
/// Errors   those of text::LabelledPairSource; kInvalidArgument where there are not three columns.
ClassifyData read_classify_data(const ClassifyOptions& options, const text::WordPieces& pieces,
                                std::int64_t length);

/// Fine-tuning: the mean cross-entropy of the labels, and the part that is right as `accuracy`. An
/// evaluation of several files says that of each too: `dev_accuracy` of `dev.tsv`.
Workload make_classification(const BertConfig& config, const ClassifyData& data);

}  // namespace trireme::recipes::bert
