#pragma once

#include "trireme/command_line.h"

namespace trireme::recipes::bert {

/// BERT for `--model bert`: pre-training by masked tokens and next sentences, or fine-tuning on pairs
/// of texts with labels; its options are the README's.
///
/// The text is prepared when a workload is first made, by one process for all
/// (text::prepare_passages).
/// Errors of `make`   those of make_config, check, text::python_library, text::prepare_passages and
///                    text::LabelledPairSource; kInvalidArgument where samples are longer than the
///                    model has positions, a split, which is named, has too little text, or the names
///                    of columns are not three.
Recipe make_recipe();

}  // namespace trireme::recipes::bert
