#pragma once

#include <cstdint>
#include <string>

namespace trireme {

/// Sets of instructions that code is compiled for, each with those before it.
enum class Isa : std::uint8_t {
  kPortable,  ///< Of every processor of this kind.
  kAvx2,      ///< With FMA.
  kAvx512,    ///< F, BW, DQ and VL.
  kAmx,       ///< Tiles of bf16.
};

/// `portable`, `avx2`, `avx512`, `amx`.
///
/// Errors   kInvalidArgument for any other text.
Isa parse_isa(const std::string& text);
std::string to_string(Isa isa);

}  // namespace trireme
