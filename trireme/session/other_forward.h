#pragma once

#include "trireme/engine/record/recording.h"
#include "trireme/model.h"

namespace trireme::session {

struct OtherForward {
  Workload workload;
  record::Recording recording;  ///< In eval mode.
};

}  // namespace trireme::session
