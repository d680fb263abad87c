#pragma once

#include <span>
#include <string>

namespace trireme::command {

/// Becomes the program `name`, which lies beside this one or in PATH.
///
/// words    its arguments, without its name.
/// Errors   kUnavailable, with how to get it, where there is none; else it does not return.
[[noreturn]] void become(const std::string& name, std::span<const char* const> words);

}  // namespace trireme::command
