#pragma once

#include <arrow/result.h>
#include <arrow/status.h>

#include <string>
#include <utility>

namespace trireme::data {

/// Throws what a status says that is not good: kIo where the system failed, kResourceExhausted without memory,
/// kInvalidArgument for what Arrow does not know, else kCorruptData: `cannot be `, `action`, why.
[[noreturn]] void throw_status(const arrow::Status& status, const std::string& action);

inline void check_status(const arrow::Status& status, const std::string& action) {
  if (!status.ok()) throw_status(status, action);
}

template <typename Value>
Value value_of(arrow::Result<Value> result, const std::string& action) {
  check_status(result.status(), action);
  return std::move(result).ValueUnsafe();
}

}  // namespace trireme::data
