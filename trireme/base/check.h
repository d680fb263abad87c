#pragma once

#include <source_location>
#include <string>
#include <string_view>

namespace trireme::internal {
[[noreturn]] void check_failed(std::string_view condition, const std::string& message,
                               std::source_location where = std::source_location::current());
}  // namespace trireme::internal

/// Aborts the process, printing the place and `message` (a std::string), where our own invariant
/// is broken. Never for what a caller or the environment can cause.
#define TRIREME_CHECK(condition, message)                                     \
  do {                                                                        \
    if (!(condition)) ::trireme::internal::check_failed(#condition, message); \
  } while (false)
