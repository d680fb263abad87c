#pragma once

#include <exception>
#include <string>

#include "python/backend/call_line.h"
#include "trireme/error.h"

namespace trireme::backend {

/// The exception by which torch's users know `error`, with the line that has called the operation:
/// torch.distributed.DistBackendError, a RuntimeError.
std::exception_ptr operation_failed(const Error& error, const CallLine& line);

/// Throws, of a call that has not begun: ValueError of kInvalidArgument, else as above.
[[noreturn]] void throw_refusal(const Error& error, const CallLine& line);

}  // namespace trireme::backend
