#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "packs/speech/kernels/lattices.h"
#include "trireme/error.h"

namespace trireme::speech {
namespace {

using LengthList = std::vector<std::int32_t>;
constexpr std::int32_t kMostLength = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostPositions = std::int64_t{kMostLength} + 1;

std::string offsets_refusal(const LengthList& num_frames, const LengthList& num_labels) {
  try {
    packed_offsets(num_frames, num_labels);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "none";
}

TEST(TransducerLatticesTest, OffsetsAreWide) {
  EXPECT_THAT(packed_offsets({}, {}), testing::ElementsAre(0));
  EXPECT_THAT(packed_offsets(LengthList{2, 3}, LengthList{4, 0}), testing::ElementsAre(0, 10, 13));
  EXPECT_THAT(
      packed_offsets(LengthList{1, kMostLength}, LengthList{kMostLength, kMostLength}),
      testing::ElementsAre(0, kMostPositions, kMostPositions + kMostLength * kMostPositions));
}

TEST(TransducerLatticesTest, PositionsOfTheMostLabelsAreCounted) {
  const LengthList frames = {1}, labels = {kMostLength};
  const std::vector<std::int64_t> offsets = {0, kMostPositions};
  const Lattices lattices{frames, labels, 1, kMostLength, offsets};
  check(lattices);
  EXPECT_EQ(lattices.num_rows(), kMostPositions);
  EXPECT_EQ(lattices.frame_stride(0), kMostPositions);
}

TEST(TransducerLatticesTest, OffsetsThatCannotBeCountedAreRefused) {
  EXPECT_THAT(offsets_refusal({kMostLength, kMostLength, kMostLength},
                              {kMostLength, kMostLength, kMostLength}),
              testing::HasSubstr("sample 2"));
  EXPECT_THAT(offsets_refusal({1, 2}, {1}), testing::HasSubstr("2 samples' frames"));
}

}  // namespace
}  // namespace trireme::speech
