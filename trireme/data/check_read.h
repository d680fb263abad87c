#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "trireme/data.h"

namespace trireme::data {

/// Errors   kInvalidArgument, beginning with `what`, where the source has no such sample, or the destinations are not one for each
///          of its fields, of its bytes.
void check_read(const std::string& what, const Source& source, Sample sample,
                std::span<const std::span<std::byte>> destinations);

}  // namespace trireme::data
