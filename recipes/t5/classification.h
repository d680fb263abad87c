#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "packs/text/data/pair_to_text_source.h"
#include "packs/text/data/tokenizer.h"
#include "recipes/options/classify_options.h"
#include "recipes/t5/config.h"
#include "recipes/t5/model.h"
#include "trireme/model.h"

namespace trireme::recipes::t5 {

/// Pairs to be classified, and held-out ones, if any.
struct PairData {
  text::Tokenizer tokenizer;
  std::shared_ptr<const text::PairToTextSource> training;
  std::shared_ptr<const text::PairToTextSource> held_out;  ///< With the labels of `training`.
};

/// inputs   tokens of a sample's inputs at most.
/// Errors   those of text::PairToTextSource; kInvalidArgument where there are not three columns.
PairData read_pairs(const ClassifyOptions& options, const text::Tokenizer& tokenizer,
                    std::int64_t inputs);

/// Fine-tuning, a text in and the label's text out: the cross-entropy of the targets, and as `accuracy` the part of the
/// samples whose label the model would write, token by token the most likely one. An evaluation of several files says that
/// of each too: `dev_accuracy` of `dev.tsv`. All weights have the names of the pre-trained model's.
Workload make_classification(const Config& config, const PairData& data);

}  // namespace trireme::recipes::t5
