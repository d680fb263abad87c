#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace trireme::transport {

/// Names a stream of messages between two ranks; both compute it from what they both know. Those
/// with the highest bit set belong to wire/collectives.
using Tag = std::uint64_t;

/// What travels with a message, before its bytes: sender and receiver give it a meaning, zeros have
/// none.
using Envelope = std::array<std::byte, 48>;

/// Looks at the envelope of a message before its memory is asked for. Called once, on a thread of
/// the endpoint; must not call the endpoint. What it throws ends the world.
using Inspection = std::function<void(const Envelope& envelope)>;

}  // namespace trireme::transport
