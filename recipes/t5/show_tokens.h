#pragma once

#include <string>

#include "trireme/command_line.h"

namespace trireme::recipes::t5 {

/// What a folder of prepared text holds, by its tokens.json. Errors: those of text::load_token_index.
ShownDocument show_tokens(const std::string& file);

}  // namespace trireme::recipes::t5
