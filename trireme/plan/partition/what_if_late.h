#pragma once

#include <vector>

#include "trireme/plan/partition/what_if.h"

namespace trireme::partition {

/// The step whose actions take now more, now less than their price, by 10 % (simulate/stragglers.h): its mean over 100
/// steps, and what 95 of them do not exceed. Nothing of a step of more than 20,000 operations, which would be played for long.
///
/// step     whose actions were not measured.
/// Errors   those of simulate::forecast.
std::vector<WhatIf> what_if_late(const PlannedStep& step);

}  // namespace trireme::partition
