#pragma once

// The backends of the conformance tests: each makes worlds of any size.

#include <array>
#include <functional>
#include <memory>
#include <ostream>
#include <string_view>

#include "tests/wire/transport/ranks.h"
#include "trireme/wire/transport/sim/world.h"

namespace trireme::transport::test {

enum class Backend { kSim, kSimDelays };

inline constexpr std::array kBackends = {Backend::kSim, Backend::kSimDelays};

inline std::string_view to_text(Backend backend) {
  constexpr std::array<std::string_view, 2> kNames = {"sim", "sim_delays"};
  return kNames.at(static_cast<std::size_t>(backend));
}

inline void PrintTo(Backend backend, std::ostream* out) { *out << to_text(backend); }

struct World {
  Endpoints endpoints;
};

inline World make_world(Backend backend, int num_ranks) {
  SimOptions options{.seed = 1};
  if (backend == Backend::kSimDelays) options.max_delay = std::chrono::milliseconds(1);
  return {make_sim_world(num_ranks, options)};
}

}  // namespace trireme::transport::test
