#pragma once

#include <set>
#include <string>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::reference {

/// Gradients that plain autograd adds in another order than the contract, on one lane: equal to
/// rounding, not to the bit.
struct Rounding {
  bool is_everywhere = false;        ///< A gradient of an activation is added so.
  std::set<std::string> parameters;  ///< Else of these alone.
  double limit = 1e-4;               ///< |difference| / |norm| that rounding explains.

  bool is_none() const { return !is_everywhere && parameters.empty(); }
  bool allows(const std::string& parameter) const {
    return is_everywhere || parameters.contains(parameter);
  }
};

/// Everywhere: opaque nodes (theirs are added apart) and copied nodes. Of single parameters: ties;
/// sparse gradients (torch merges their lists of rows, so a row that occurs twice is added up in an
/// order that depends on its neighbours); weights used several times under autocast (torch casts a
/// leaf once and adds in the lower precision).
///
/// recorded   the graph before the copies of `plan`.
Rounding rounding_of(const graph::Graph& recorded, const layout::Plan& plan);

}  // namespace trireme::reference
