#pragma once

#include "trireme/command_line.h"

namespace trireme::recipes::bert {

/// BERT pre-training by masked tokens and next sentences, for `--model bert`; its options are the
/// README's.
///
/// The text is prepared when a workload is first made, by one process for all
/// (text::prepare_passages).
/// Errors of `make`   those of make_config, check, text::python_library and text::prepare_passages;
///                    kInvalidArgument where samples are longer than the model has positions, or a
///                    split, which is named, has too little text.
Recipe make_recipe();

}  // namespace trireme::recipes::bert
