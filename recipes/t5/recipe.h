#pragma once

#include "trireme/command_line.h"

namespace trireme::recipes::t5 {

/// T5 pre-training by span corruption, for `--model t5`; its options are the README's.
///
/// The text is prepared when a workload is first made, by one process for all (text::prepare).
/// Errors of `make`   those of make_config, check, text::python_library and text::prepare;
///                    kInvalidArgument for a tokenizer whose padding is not token 0, inputs with
///                    more hidden spans than there are sentinels, or a split, which is named,
///                    with less text than a sample.
Recipe make_recipe();

}  // namespace trireme::recipes::t5
