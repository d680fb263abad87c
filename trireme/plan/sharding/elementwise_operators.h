#pragma once

#include <span>
#include <string_view>

namespace trireme::sharding {

/// Operators whose every output element comes from the elements at its place alone, inputs repeated where they have one element in its
/// place: any part of their inputs gives that part of their outputs.
std::span<const std::string_view> elementwise_operators();

}  // namespace trireme::sharding
