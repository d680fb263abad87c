#include "packs/speech/data/text_encoder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "trireme/error.h"

namespace trireme::speech {
namespace {

/// Bytes of the character that begins with this one; 0 where none does.
std::size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80U   ? 1
         : byte < 0xC2U ? 0
         : byte < 0xE0U ? 2
         : byte < 0xF0U ? 3
         : byte < 0xF5U ? 4
                        : 0;
}

/// What stands at the beginning, cut off there. kCorruptData where that is no UTF-8.
std::string_view take_character(std::string_view& text) {
  const std::size_t count = character_bytes(text.front());
  const auto is_next = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  if (count == 0 || count > text.size() ||
      !std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(count), is_next)) {
    throw Error(ErrorKind::kCorruptData, "a text is not UTF-8");
  }
  const std::string_view character = text.substr(0, count);
  text.remove_prefix(count);
  return character;
}

}  // namespace

TextEncoder character_encoder(std::string_view alphabet) {
  std::map<std::string, std::int32_t, std::less<>> numbers;
  try {
    for (std::string_view rest = alphabet; !rest.empty();) {
      const std::string character(take_character(rest));
      const auto number = static_cast<std::int32_t>(numbers.size()) + 1;
      if (!numbers.emplace(character, number).second) {
        throw Error(ErrorKind::kInvalidArgument, "'" + character + "' is there twice");
      }
    }
    if (numbers.empty()) throw Error(ErrorKind::kInvalidArgument, "it is empty");
  } catch (const Error& error) {
    throw Error(ErrorKind::kInvalidArgument, "alphabet of characters: " + error.message());
  }
  const auto encode = [numbers = std::move(numbers)](std::string_view text) {
    std::vector<std::int32_t> encoded;
    while (!text.empty()) {
      const std::string_view character = take_character(text);
      const auto found = numbers.find(character);
      if (found == numbers.end()) {
        throw Error(ErrorKind::kCorruptData, "a text has the character '" + std::string(character) +
                                                 "', which is not in the alphabet");
      }
      encoded.push_back(found->second);
    }
    return encoded;
  };
  return {.encode = encode, .identity = "characters " + std::string(alphabet)};
}

}  // namespace trireme::speech
