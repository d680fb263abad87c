#pragma once

#include "packs/text/data/labelled_pair_source.h"
#include "packs/text/data/word_pieces.h"
#include "recipes/bert/config.h"
#include "recipes/options/pair_workload.h"
#include "trireme/model.h"

namespace trireme::recipes::bert {

using ClassifiedSequences = PairData<text::LabelledPairSource, text::WordPieces>;

/// Fine-tuning: the mean cross-entropy of the labels, and the part that is right as `accuracy`. An
/// evaluation of several files says that of each too: `dev_accuracy` of `dev.tsv`.
Workload make_classification(const BertConfig& config, const ClassifiedSequences& data);

}  // namespace trireme::recipes::bert
