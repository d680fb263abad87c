#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/data.h"

namespace trireme::text {

/// What a sample has for a field: numbers, and what stands behind them up to the field's size.
struct FieldNumbers {
  std::vector<std::int32_t> numbers;
  std::int32_t rest = 0;
};

/// Copies a sample out as data::Source::read does; all fields are i32.
///
/// origin   what the samples are, for messages.
/// Errors   kInvalidArgument where destinations do not fit the fields.
void copy_fields(const std::vector<data::Field>& fields, const std::vector<FieldNumbers>& values,
                 std::span<const std::span<std::byte>> destinations, const std::string& origin);

}  // namespace trireme::text
