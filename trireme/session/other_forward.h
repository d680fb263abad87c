#pragma once

#include "trireme/engine/record/recording.h"
#include "trireme/engine/train/rank_session.h"
#include "trireme/model.h"
#include "trireme/session.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::session {

struct OtherForward {
  Workload workload;
  record::Recording recording;  ///< In eval mode.
};

inline constexpr const char* kNoEvaluation =
    "the workload has no evaluation data; give Workload::evaluation a source";

/// As Session::record_evaluation. Every rank calls it.
OtherForward record_other(const MakeWorkload& make, const train::RankSession& ranks,
                          const SessionOptions& options, const collectives::World& world);

}  // namespace trireme::session
