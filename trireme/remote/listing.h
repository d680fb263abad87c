#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme::remote {

/// A page of what a bucket holds (ListObjectsV2).
struct ListingPage {
  std::vector<std::string>
      keys;  ///< In the store's order; those that end in a slash, which stand for folders, are left out.
  std::string next;  ///< The token of the next page; empty: this is the last.
};

/// Parses the XML of a page. Names of entities that a document defines itself are not resolved.
///
/// origin   what is listed, for messages.
/// Errors   kCorruptData where it is no such page, is cut off, or a key is empty or badly encoded.
ListingPage parse_listing(std::string_view xml, std::string_view origin);

/// The `<Code>` of an error that a store answers with, `NoSuchKey`; empty where there is none.
std::string error_code(std::string_view xml);

}  // namespace trireme::remote
