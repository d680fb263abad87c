#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trireme {

/// What a file of the kernel holds, as of /proc; empty if it is missing. These files say that they have no bytes, so it is read
/// to its end.
std::string kernel_file(const std::string& path);

/// The value of the first line `key : value` of a file such as /proc/cpuinfo; empty if none.
std::string field_of(std::string_view text, std::string_view key);

/// Of the machine, or what the process's control group and those around it allow if less.
///
/// Errors   kIo where the system does not say.
std::int64_t usable_memory_bytes();

namespace internal {

/// The lowest of the machine's memory and what control groups allow.
///
/// meminfo   content of /proc/meminfo. limits: contents of memory.max, which may say `max`.
/// Errors    kIo where meminfo has no MemTotal.
std::int64_t usable_bytes(std::string_view meminfo, std::span<const std::string> limits);

}  // namespace internal
}  // namespace trireme
