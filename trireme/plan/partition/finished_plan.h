#pragma once

#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// The candidate with what is decided once its cuts are: owners of shared parameters, stages that hold less, the size of
/// buckets.
///
/// most_us   steps as long as that are of no use.
Candidate finished(const Problem& problem, Candidate candidate, double most_us);

/// Its plan, with what it was made from and what it is predicted to do.
layout::Plan finished_plan(const Problem& problem, Candidate candidate);

}  // namespace trireme::partition
