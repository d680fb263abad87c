#pragma once

namespace trireme {

/// Exit codes of the programs here.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  ///< A file, the machine, a difference that was found.
inline constexpr int kMisuse = 2;  ///< Something that the caller can put right.

}  // namespace trireme
