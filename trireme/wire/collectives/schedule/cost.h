#pragma once

#include <algorithm>

#include "trireme/wire/collectives/description.h"
#include "trireme/wire/collectives/tuner.h"

namespace trireme::collectives {

/// A call as the formulas of docs/algorithms.md see it: n ranks, g of them per host, M bytes.
struct CostCase {
  Collective operation;
  double n;
  double g;
  double bytes;              ///< M
  double s = 0;              ///< Reducers.
  double partial_bytes = 0;  ///< M as partial results, where those are wider than elements.

  bool is_one_host() const { return g >= n; }

  /// Between ranks where all links are alike.
  const LinkCosts& link(const Costs& costs) const {
    return is_one_host() && g > 1 ? costs.local : costs.network;
  }

  /// Ranks behind the same link.
  double sharing() const { return is_one_host() ? 1 : g; }

  /// Bytes out of a link whose ranks each send `bytes_per_peer` to every rank behind another one.
  double to_all(double bytes_per_peer) const {
    return sharing() * (n - sharing()) * bytes_per_peer;
  }
};

/// What one rank, or its host, does in an operation at most.
struct CostShare {
  double hops = 0;           ///< Messages one after another.
  double bytes = 0;          ///< Through the link, in one direction.
  double reduced_bytes = 0;  ///< Read to be reduced.
};

inline double seconds_of(const CostShare& share, const LinkCosts& link, double gamma) {
  return share.hops * link.alpha_s + share.bytes * link.beta_s_per_byte +
         share.reduced_bytes * gamma;
}

/// The messages of an all_to_all differ in nothing but their number, so what each costs its sender
/// counts: half an alpha beside the first, as measured (benchmarks/results).
inline constexpr double kNextMessage = 0.5;

}  // namespace trireme::collectives
