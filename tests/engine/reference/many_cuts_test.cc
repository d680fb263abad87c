#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/reference/random_cuts.h"

namespace trireme::reference {
namespace {

class ManyCuts : public testing::TestWithParam<std::string> {};

TEST_P(ManyCuts, TwoHundredSamplesEachOfThreeToFiveStages) { try_random_cuts(GetParam(), 200); }

INSTANTIATE_TEST_SUITE_P(Models, ManyCuts, testing::ValuesIn(models::names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace trireme::reference
