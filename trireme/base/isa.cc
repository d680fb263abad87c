#include "trireme/base/isa.h"

#include <array>
#include <string_view>

#include "trireme/error.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"portable", "avx2", "avx512", "amx"};

}  // namespace

Isa parse_isa(const std::string& text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames[i]) return static_cast<Isa>(i);
  }
  throw Error(ErrorKind::kInvalidArgument,
              "expected portable, avx2, avx512 or amx, got \"" + text + "\"");
}

std::string to_string(Isa isa) { return std::string(kNames[static_cast<std::size_t>(isa)]); }

}  // namespace trireme
