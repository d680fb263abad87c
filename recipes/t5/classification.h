#pragma once

#include <optional>

#include "packs/text/data/pair_to_text_source.h"
#include "packs/text/data/tokenizer.h"
#include "recipes/options/pair_workload.h"
#include "recipes/t5/config.h"
#include "trireme/data.h"
#include "trireme/model.h"

namespace trireme::recipes::t5 {

using ClassifiedTexts = PairData<text::PairToTextSource, text::Tokenizer>;

/// Fine-tuning, a text in and the label's text out: the cross-entropy of the targets, and as `accuracy` the part of the
/// samples whose label the model would write, token by token the most likely one. An evaluation of several files says that
/// of each too: `dev_accuracy` of `dev.tsv`. All weights have the names of the pre-trained model's.
///
/// rows   how samples, which then have lengths of their own, share rows; none: each stands alone.
Workload make_classification(const Config& config, const ClassifiedTexts& data,
                             const std::optional<data::PackOptions>& rows = {});

}  // namespace trireme::recipes::t5
