#pragma once

#include "trireme/engine/record/recording.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// The recording whose graph is the one that the plan's stages count in (layout::checked_graph). Errors of that.
record::Recording planned_recording(record::Recording recorded, const layout::Plan& plan);

}  // namespace trireme::train
