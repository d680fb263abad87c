#include <gtest/gtest.h>

#include "tests/engine/train/layouts.h"

namespace trireme::train {
namespace {

class HundredSteps : public testing::TestWithParam<Layout> {};

// Other tests stop after two or three: state that is lost between steps shows late.
TEST_P(HundredSteps, HaveTheBitsOfTheSerialExecutor) {
  expect_bits_of_serial_executor(GetParam(), {}, 100);
}

/// Every schedule, each with something else.
INSTANTIATE_TEST_SUITE_P(
    Schedules, HundredSteps,
    testing::Values(Layout{.model = "mlp", .stages = 3, .schedule = "simple", .offloads = true},
                    Layout{.model = "two_losses",
                           .stages = 2,
                           .replicas = 2,
                           .schedule = "interleaved",
                           .shards_state = true},
                    Layout{.model = "tagger",
                           .stages = 2,
                           .replicas = 2,
                           .schedule = "zero_bubble",
                           .gradients = Dtype::kBf16},
                    Layout{.model = "transformer",
                           .stages = 3,
                           .schedule = "zero_bubble_h2",
                           .recomputes = true},
                    Layout{.model = "mlp",
                           .stages = 4,
                           .schedule = "v_half",
                           .stages_per_rank = 2,
                           .precision = Precision::kBf16},
                    Layout{.model = "transformer",
                           .stages = 4,
                           .replicas = 2,
                           .schedule = "v_min",
                           .stages_per_rank = 2,
                           .shards_parameters = true}));

}  // namespace
}  // namespace trireme::train
