#include "trireme/remote/listing.h"

#include <algorithm>
#include <charconv>
#include <pugixml.hpp>

#include "trireme/error.h"

namespace trireme::remote {
namespace {

/// As stores encode keys that XML could not hold: `+` is a blank, %XX a byte. False where it is not so encoded.
bool decode(std::string_view text, std::string& decoded) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || problem != std::errc() || end != digits.data() + 2) return false;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return true;
}

}  // namespace

ListingPage parse_listing(std::string_view xml, std::string_view origin) {
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::kCorruptData, "the listing of '" + std::string(origin) + "' " + problem);
  };
  pugi::xml_document document;
  const auto result = document.load_buffer(xml.data(), xml.size());
  if (!result) {
    refuse("is damaged at byte " + std::to_string(result.offset) + ": " + result.description());
  }
  const pugi::xml_node root = document.document_element();
  if (std::string_view(root.name()) != "ListBucketResult") {
    refuse("is none: it begins with <" + std::string(root.name()).substr(0, 64) +
           ">; expected <ListBucketResult>");
  }
  const bool is_encoded = std::string_view(root.child_value("EncodingType")) == "url";
  ListingPage page;
  for (const pugi::xml_node entry : root.children("Contents")) {
    const std::string_view text = entry.child_value("Key");
    std::string key;
    if (!is_encoded) key = text;
    if (is_encoded && !decode(text, key)) refuse("has a key that is badly encoded");
    if (key.empty() || key.find('\0') != std::string::npos) refuse("has a key that can be none");
    if (!key.ends_with('/')) page.keys.push_back(std::move(key));
  }
  const bool is_cut = std::string_view(root.child_value("IsTruncated")) == "true";
  if (is_cut) page.next = root.child_value("NextContinuationToken");
  if (is_cut && page.next.empty()) refuse("goes on, and does not say where");
  return page;
}

std::string error_code(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return {};
  const pugi::xml_node root = document.document_element();
  std::string code = root.child_value("Code");
  const bool is_word = std::ranges::all_of(code, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
  constexpr std::size_t kMostLetters = 64;
  return std::string_view(root.name()) == "Error" && is_word && code.size() <= kMostLetters
             ? code
             : std::string();
}

}  // namespace trireme::remote
