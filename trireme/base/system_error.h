#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace trireme {

/// Throws what a system call's error number means: kResourceExhausted where memory, disk, a
/// file's allowed size or descriptors have run out, else kIo: `cannot <action>: <the system's
/// reason>`.
///
/// code   of errno, or a std::error_code of the standard library's functions.
[[noreturn]] void throw_system_error(const std::string& action, int code);
[[noreturn]] void throw_system_error(const std::string& action, const std::error_code& code);

/// `cannot <action> '<path>': ...`
[[noreturn]] void throw_system_error(const std::string& action, const std::filesystem::path& path,
                                     int code);
[[noreturn]] void throw_system_error(const std::string& action, const std::filesystem::path& path,
                                     const std::error_code& code);

}  // namespace trireme
