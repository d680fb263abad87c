#pragma once

#include <filesystem>
#include <string_view>

namespace trireme::text {

/// The folder of Python's standard library on this machine: text that most Linux machines have,
/// under the PSF licence. Of several versions the newest.
///
/// option   that names other text, for the message.
/// under    where its folders lie, as `python3.11`.
/// Errors   kUnavailable where there is none; the message says what to do instead.
std::filesystem::path python_library(std::string_view option,
                                     const std::filesystem::path& under = "/usr/lib");

}  // namespace trireme::text
