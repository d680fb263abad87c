#pragma once

#include "trireme/plan/partition/candidate.h"

namespace trireme::partition {

/// The candidate with the size of buckets that makes its step shortest, from when the profile says that each gradient is
/// complete: large ones cost fewer starts, small ones are on their way earlier. Halved or doubled as long as that helps; as it is
/// with one replica.
///
/// Cost   two forecasts, and one more for each time that one of them helps.
Candidate with_bucket_size(const Problem& problem, Candidate candidate);

}  // namespace trireme::partition
