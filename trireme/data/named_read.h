#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trireme/data.h"
#include "trireme/error.h"

namespace trireme::data {

/// What `read` returns. Errors of the medium, which know a file at best, get record and field in front.
template <typename Read>
auto read_for(const RecordSource& records, std::int64_t index, std::string_view field, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    const bool names_record =
        error.kind() == ErrorKind::kInvalidArgument || error.kind() == ErrorKind::kCorruptData;
    if (names_record) throw;
    throw Error(error.kind(),
                records.name(index) + ", field '" + std::string(field) + "': " + error.message());
  }
}

/// Calls `action`; its errors get the record in front.
template <typename Action>
void naming_record(const RecordSource& records, std::int64_t index, Action action) {
  try {
    action();
  } catch (const Error& error) {
    throw Error(error.kind(), records.name(index) + ": " + error.message());
  }
}

}  // namespace trireme::data
