#include "trireme/plan/sharding/elementwise_operators.h"

#include <array>

namespace trireme::sharding {

std::span<const std::string_view> elementwise_operators() {
  static constexpr auto kOperators = std::to_array<std::string_view>(
      {"aten::add",       "aten::sub",        "aten::mul",         "aten::div",
       "aten::neg",       "aten::abs",        "aten::exp",         "aten::log",
       "aten::sqrt",      "aten::rsqrt",      "aten::tanh",        "aten::sigmoid",
       "aten::relu",      "aten::gelu",       "aten::silu",        "aten::elu",
       "aten::pow",       "aten::square",     "aten::clamp",       "aten::clamp_min",
       "aten::clamp_max", "aten::where",      "aten::masked_fill", "aten::eq",
       "aten::ne",        "aten::lt",         "aten::le",          "aten::gt",
       "aten::ge",        "aten::maximum",    "aten::minimum",     "aten::to",
       "aten::_to_copy",  "aten::contiguous", "aten::clone",       "aten::detach",
       "aten::alias",     "aten::expand",     "aten::expand_as",   "aten::leaky_relu",
       "aten::hardtanh",  "aten::relu6",      "aten::hardswish",   "aten::softplus"});
  return kOperators;
}

}  // namespace trireme::sharding
