#pragma once

#include <cstdint>
#include <string>

#include "trireme/base/json.h"
#include "trireme/base/json_field.h"

namespace trireme::text {

/// What became of the files and documents that were given.
struct TextReport {
  std::int64_t files = 0;       ///< Read.
  std::int64_t hidden = 0;      ///< Files and folders left out since their names begin with a dot.
  std::int64_t filtered = 0;    ///< Files of folders with a suffix that was not asked for.
  std::int64_t unreadable = 0;  ///< Broken links, not regular, or no permission.
  std::int64_t bytes = 0;       ///< Of the files that were read.
  std::int64_t documents = 0;   ///< That gave tokens.
  std::int64_t empty = 0;       ///< Documents without text, left out.
  std::int64_t binary = 0;      ///< Documents left out, or files from there on, for a NUL byte.
  std::int64_t repaired = 0;    ///< Documents that were not UTF-8.
  std::int64_t replaced = 0;    ///< U+FFFD put into them.
  std::int64_t cut = 0;         ///< Longer than a document may be: became several.

  TextReport& operator+=(const TextReport& other);
  bool operator==(const TextReport&) const = default;
};

/// One line for people; what is 0 is left out.
std::string to_text(const TextReport& report);

Json to_json(const TextReport& report);

/// Inverse of `to_json`. kCorruptData, naming the field.
TextReport report_from_json(const JsonField& field);

}  // namespace trireme::text
