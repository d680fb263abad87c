#pragma once

#include <cstddef>
#include <span>

#include "trireme/wire/transport/matcher.h"
#include "trireme/wire/transport/tcp/frame.h"

namespace trireme::transport::internal {

/// The frame of a letter, without its payload.
Frame frame_of(const Letter& letter);

/// Inverse. kCorruptData where it is none.
Letter letter_of(const Frame& frame, std::span<const std::byte> payload);

}  // namespace trireme::transport::internal
