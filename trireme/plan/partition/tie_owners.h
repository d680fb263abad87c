#pragma once

#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// The candidate with shared parameters owned by the stage with the most room among those that use
/// them, where the objective's score is better: the owner has the optimizer's state, updates, and
/// sends the value to the others. Else the first of them owns. Changes no bits.
///
/// Cost   a forecast for each of the largest 8 shared parameters.
Candidate with_tie_owners(const Problem& problem, Candidate candidate);

}  // namespace trireme::partition
