#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::speech {

/// Text to the numbers that a model is trained to say. Both are functions of what it was made from.
struct TextEncoder {
  std::function<std::vector<std::int32_t>(std::string_view text)> encode;
  std::string identity;  ///< Tells it from others, for a run that resumes.
};

/// Each character of `alphabet` by its place from 1 on; 0 is left for the transducer's blank. UTF-8.
///
/// Errors   kInvalidArgument for an alphabet that is empty, has a character twice or is not UTF-8. Of encode:
///          kCorruptData, naming it, for a character that is not in the alphabet.
TextEncoder character_encoder(std::string_view alphabet);

}  // namespace trireme::speech
