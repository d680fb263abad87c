#pragma once

#include <map>
#include <memory>

#include "trireme/plan/schedule/step_program.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::train {

/// This rank's groups by their index in the step program.
using Groups = std::map<int, std::unique_ptr<collectives::Group>>;

/// Makes them: those of `program` that this rank is in.
Groups make_groups(const schedule::StepProgram& program, const collectives::World& world);

/// This rank's group of the kind.
collectives::Group& group_of(const schedule::StepProgram& program, const Groups& groups,
                             schedule::GroupKind kind);

}  // namespace trireme::train
