#pragma once

#include <string>

#include "trireme/plan/parameters/parameter_map.h"

namespace trireme::parameters {

/// The map as tables for people: its buckets, then the slots of each. Any map is safe to pass in.
std::string show(const ParameterMap& map);

}  // namespace trireme::parameters
