#pragma once

#include <filesystem>

namespace trireme::recipes::t5 {

/// The folder of Python's standard library on this machine: text that most Linux machines have,
/// under the PSF licence. Of several versions the newest.
///
/// under    where its folders lie, as `python3.11`.
/// Errors   kUnavailable where there is none; the message says what to do instead.
std::filesystem::path python_library(const std::filesystem::path& under = "/usr/lib");

}  // namespace trireme::recipes::t5
