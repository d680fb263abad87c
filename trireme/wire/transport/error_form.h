#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trireme/base/error.h"

namespace trireme::transport {

/// `error` with its causes as part of its message: what the other ranks will read, so that all of
/// them print the same.
Error flattened(const Error& error);

/// An error as bytes for another rank: kind, message, context; at most about 64 KiB, longer texts
/// are cut. Causes are kept only if `flattened`.
std::vector<std::byte> error_to_bytes(const Error& error);

/// Inverse of `error_to_bytes`. kCorruptData where `bytes` are not of that form.
Error error_from_bytes(std::span<const std::byte> bytes);

}  // namespace trireme::transport
