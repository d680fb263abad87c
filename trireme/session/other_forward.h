#pragma once

#include "trireme/engine/record/recording.h"
#include "trireme/model.h"

namespace trireme::session {

struct OtherForward {
  Workload workload;
  record::Recording recording;  ///< In eval mode.
};

inline constexpr const char* kNoEvaluation =
    "the workload has no evaluation data; give Workload::evaluation a source";

}  // namespace trireme::session
