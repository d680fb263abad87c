#include "trireme/base/random.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace trireme {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The published answers: Random123 1.14, file kat_vectors, lines `philox4x32 10`.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(StreamSeed, EveryWordAndItsPlaceMatter) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed : {0, 1, 2}) {
    for (std::uint64_t first : {0, 1, 2}) {
      for (std::uint64_t second : {0, 1, 2}) seeds.insert(stream_seed(seed, {first, second}));
      seeds.insert(stream_seed(seed, {first}));
    }
  }
  EXPECT_EQ(seeds.size(), 3u * (9 + 3));
}

TEST(StreamSeed, NamesDifferInEveryByteAndInLength) {
  std::set<std::uint64_t> seeds;
  const std::string name = "decoder.3.weight";
  for (std::size_t length = 0; length <= name.size(); ++length) {
    seeds.insert(stream_seed(7, std::string_view(name).substr(0, length)));
  }
  for (std::size_t i = 0; i < name.size(); ++i) {
    std::string other = name;
    other[i] = '\0';
    seeds.insert(stream_seed(7, other));
  }
  seeds.insert(stream_seed(7, name + '\0'));
  seeds.insert(stream_seed(8, name));
  EXPECT_EQ(seeds.size(), 2 * name.size() + 3);
}

// Weights and masks of every saved run hang on these: a change breaks resuming, not only this test.
TEST(StreamSeed, StaysWhatItWas) {
  EXPECT_EQ(stream_seed(1, {2, 3}), 8934129697890587158u);
  EXPECT_EQ(stream_seed(1, "encoder.weight"), 6100258175169235886u);
  EXPECT_EQ((NodeStream{.seed = 1, .step = 2, .microbatch = 3}.of_node(4)), 14209805530789742371u);
}

TEST(NodeStream, DependsOnSeedStepMicrobatchAndNode) {
  const NodeStream stream{.seed = 5, .step = 6, .microbatch = 7};
  EXPECT_EQ(stream.of_node(8), stream_seed(5, {6, 7, 8}));
  std::set<std::uint64_t> seeds = {
      stream.of_node(8),
      stream.of_node(9),
      NodeStream{.seed = 6, .step = 6, .microbatch = 7}.of_node(8),
      NodeStream{.seed = 5, .step = 7, .microbatch = 6}.of_node(8),
      NodeStream{.seed = 5, .step = 6, .microbatch = 8}.of_node(7),
  };
  EXPECT_EQ(seeds.size(), 5u);
}

}  // namespace
}  // namespace trireme
