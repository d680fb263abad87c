#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "trireme/error.h"

namespace trireme::record {

/// kResourceExhausted where memory ran out, kUnavailable where this build of torch lacks a device,
/// kModelFailure else.
ErrorKind kind_of(const c10::Error& error);

/// What to do where a failure is of that kind, begun by "; "; may be empty.
std::string advice(ErrorKind kind);

/// What torch says, in one line without a full stop.
std::string text_of(const c10::Error& error);

}  // namespace trireme::record
