#include "trireme/kernels/cuda/one_shot.h"

#include <gtest/gtest.h>

#include <vector>

#include "trireme/base/cuda/stream.h"
#include "trireme/error.h"

namespace trireme::kernels::cuda {
namespace {

TEST(OneShotShape, SlicesCoverABufferOnce) {
  for (const std::int64_t bytes :
       {0L, 1L, 15L, 16L, 17L, 2047L, 2049L, 65'535L, 524'288L, 524'289L, 9'999'999L}) {
    const OneShotShape shape = one_shot_shape(bytes);
    EXPECT_GE(shape.num_blocks, 1);
    EXPECT_LE(shape.num_blocks, kMostBlocks);
    EXPECT_GE(shape.num_pieces, 1);  // or ranks would not meet
    EXPECT_EQ(shape.slice_bytes % 16, 0);
    EXPECT_LE(shape.slice_bytes, static_cast<std::int64_t>(kSliceBytes));
    const std::int64_t piece = shape.num_blocks * shape.slice_bytes;
    EXPECT_GE(shape.num_pieces * piece, bytes) << "all of it";
    if (bytes > 0) {
      EXPECT_LT((shape.num_pieces - 1) * piece, bytes) << "no piece without elements";
    }
  }
}

TEST(OneShotShape, UpTo512KibIsOnePiece) {
  EXPECT_EQ(one_shot_shape(512 * 1024).num_pieces, 1);
  EXPECT_EQ(one_shot_shape(512 * 1024 + 1).num_pieces, 2);
}

TEST(OneShot, SaysThatThereIsNoGpu) {
  if (!trireme::cuda::why_no_gpu()) GTEST_SKIP() << "there is a GPU";
  auto region = std::make_unique<OneShotRegion>();
  OneShotRanks ranks;
  ranks.regions[0] = region.get();
  std::vector<float> data(4);
  try {
    one_shot_all_reduce(ranks, {}, 1, reinterpret_cast<std::byte*>(data.data()), 4, nullptr);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnavailable) << error.what();
  }
}

}  // namespace
}  // namespace trireme::kernels::cuda
