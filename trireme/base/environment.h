#pragma once

#include <functional>
#include <optional>
#include <string>

#include "trireme/base/log.h"

namespace trireme {

/// What the environment variables say; docs/environment.md lists them. A program reads it once, at
/// its start, and passes on what is needed. Immutable.
struct Environment {
  LogLevel log_level = LogLevel::kInfo;  ///< TRIREME_LOG
};

/// The value of a variable; nothing where it is not set.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Errors   kInvalidArgument, naming the variable, where its value has no meaning. An empty value
///          is as good as none.
Environment read_environment();
Environment read_environment(const VariableLookup& lookup);

}  // namespace trireme
