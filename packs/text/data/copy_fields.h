#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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
/// origin    what the samples are, for messages.
/// lengths   of the sample, where they differ.
/// Errors    kInvalidArgument where destinations do not fit the fields.
void copy_fields(const std::vector<data::Field>& fields, const std::vector<FieldNumbers>& values,
                 std::span<const std::span<std::byte>> destinations, const std::string& origin,
                 const data::Lengths& lengths = {});

/// The padded lengths of a dimension, the longest behind the shorter ones; none without these.
///
/// shorter   ascending, each below `longest`, else kInvalidArgument.
std::vector<data::Lengths> padded_to(const std::string& name,
                                     const std::vector<std::int64_t>& shorter,
                                     std::int64_t longest);

/// What data::Field::varying of a field is whose first dimension that is; nothing where `padded` is empty.
std::map<int, std::string> varying_first(const std::string& name,
                                         const std::vector<data::Lengths>& padded);

}  // namespace trireme::text
