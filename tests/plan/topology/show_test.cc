#include "trireme/plan/topology/show.h"

#include <gtest/gtest.h>

namespace trireme::topology {
namespace {

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

TEST(TopologyShow, ListsRanksUnderTheirHosts) {
  const Topology topology = {{{"a", 4, 8 * kGibibyte}, {"b", 2, 4 * kGibibyte}},
                             {{0, {0}, kGibibyte}, {1, {0}, kGibibyte}, {0, {1, 2}, kGibibyte}}};
  EXPECT_EQ(show(topology), R"(host 0: a, 4 cores, 8.0 GiB
  rank 0: cores 0, 1.0 GiB
  rank 2: cores 1 2, 1.0 GiB
host 1: b, 2 cores, 4.0 GiB
  rank 1: cores 0, 1.0 GiB
)");
}

TEST(TopologyShow, TellsWhichRanksShareCores) {
  const Topology topology = {{{"a", 2, 8 * kGibibyte}},
                             {{0, {0, 1}, kGibibyte}, {0, {0, 1}, kGibibyte}}};
  EXPECT_NE(show(topology).find("shared: 2 cores by ranks 0 1\n"), std::string::npos);
}

}  // namespace
}  // namespace trireme::topology
