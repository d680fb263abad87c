#pragma once

#include <cstdint>

namespace trireme::schedule {

/// Messages of a channel that a rank takes in before it asks for them. In a training a sender is
/// never stopped: it keeps what is not taken in, and how much that can be follows from the order
/// (causes.h).
inline constexpr int kReceivedAhead = 2;

/// What stands before the memory of a value or gradient in a message.
inline constexpr std::int64_t kMessageHeaderBytes = 512;

}  // namespace trireme::schedule
