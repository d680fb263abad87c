#include "trireme/plan/profile/profile_show.h"

#include <gtest/gtest.h>

#include "tests/graphs/sample_graphs.h"

namespace trireme::profile {
namespace {

TEST(ProfileShow, ReadsAsTables) {
  Profile profile;
  profile.graph_sha256 = std::string(64, 'a');
  profile.microbatch = 2;
  profile.hardware = {"Processor 9000", 8, "AVX2", "2.15.0"};
  profile.costs = {{"aten::relu [2, 16]", 10, 20, 0, 0.1, {}, {0}, 64, 0, 0},
                   {"aten::linear", 100, 100, 100, 0.05, {0, 1}, {}, 0, 0, 2048}};
  profile.cost_of = {1, 0, 1, 0};
  profile.ranges = {{0, 2, 220, 440}};
  profile.held = {1 << 20, 8 << 20, 1.02, 1.05};
  profile.uncaptured = {2, 1.5};
  profile.links = {{LinkKind::kHost, {{0, 5, 6}, {1024, 5.5, 7}}}};
  profile.step = {1.5, 0.4, 0.1, {}, 0, {{1024, 41.25}}};
  EXPECT_EQ(show(profile, graph::testing::make_mlp()),
            R"(profile of microbatches of 2: F 0.330 ms, I 0.360 ms, W 0.300 ms
  taken on Processor 9000, 8 cores, AVX2, torch 2.15.0, 1 ranks busy
  graph aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa

most expensive nodes (times of all together; keeps, workspace: of each), 2 distinct of 4
  node                times   F us   I us   W us   share  keeps  workspace  spread
  aten::linear            2  300.0  300.0  300.0  90.9 %    0 B    2.0 KiB   5.0 %
  aten::relu [2, 16]      2   30.0   60.0    0.0   9.1 %  192 B        0 B  10.0 %

ranges measured as a whole; node times are scaled to them
  positions   F us   B us  nodes alone F us   B us
  0..1       220.0  440.0             110.0  220.0

where 8.0 MiB of activations are held, not 1.0 MiB: F 1.020 times as long, B 1.050 times

in stages that are not captured: F 2.000 times as long, B 1.500 times

links
  link  message  alone us  beside compute us  of computing cores us
  host      0 B       5.0                6.0
  host  1.0 KiB       5.5                7.0                   41.2

per element and step: update 1.500 ns, fold 0.400 ns; per byte of a message: copy 0.100 ns
)");
}

TEST(ProfileShow, SaysWithoutTheGraphWhatItCan) {
  Profile profile;
  profile.microbatch = 2;
  profile.hardware = {"Processor 9000", 8, "AVX2", "2.15.0"};
  profile.costs = {{"aten::linear", 100, 100, 100, 0.05, {0, 1}, {}, 0, 0, 2048}};
  profile.cost_of = {0, 0, 7};  // 7 is none: only the graph's check would refuse it
  const std::string text = show(profile);
  EXPECT_EQ(text.find("profile of microbatches of 2: 1 distinct of 3 nodes (which: --graph FILE)"),
            0U);
  EXPECT_NE(text.find("Processor 9000, 8 cores"), std::string::npos);
}

TEST(ProfileShow, LeavesOutWhatIsNotThere) {
  Profile profile;
  profile.microbatch = 1;
  const std::string text = show(profile, {});
  EXPECT_EQ(text.find("links"), std::string::npos);
  EXPECT_EQ(text.find("ranges"), std::string::npos);
}

}  // namespace
}  // namespace trireme::profile
