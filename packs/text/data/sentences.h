#pragma once

#include <string_view>
#include <vector>

namespace trireme::text {

/// The parts of a text between blank lines, none of them blank.
std::vector<std::string_view> paragraphs_of(std::string_view text);

/// About the sentences of a text, none of them blank: they end where a line ends, and behind `.`,
/// `!` or `?`, and quotes or brackets that close there, before a blank and what may begin one: a
/// capital, a digit, a quote, a bracket or a character beyond ASCII. An abbreviation before a name
/// ends one too.
std::vector<std::string_view> sentences_of(std::string_view text);

}  // namespace trireme::text
