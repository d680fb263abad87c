#pragma once

#include <string>

#include "packs/text/data/denoising_source.h"
#include "packs/text/data/tokenizer.h"
#include "recipes/t5/model.h"

namespace trireme::recipes::t5 {

/// For people: a few samples, spread over the source, with what the model puts into their gaps and
/// what was there:
///
///     sample 40
///       | def close(self):<extra_id_0>self.fp.close()
///       <extra_id_0>  model '\n        '  text '\n        '
///
/// num_samples   as many, at most those that the source has.
std::string show_completions(const T5& model, const text::DenoisingSource& source,
                             const text::Tokenizer& tokenizer, std::int64_t num_samples);

}  // namespace trireme::recipes::t5
