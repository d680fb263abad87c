// Of GPUs, what a machine without one can show. tests/wire/collectives/gpu_test.cc has the rest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "trireme/base/cuda/memory.h"
#include "trireme/base/cuda/stream.h"

namespace trireme::cuda {
namespace {

using testing::HasSubstr;

/// Tests that want no GPU are skipped where there is one.
class WithoutGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_gpu()) GTEST_SKIP() << "there is a GPU";
  }

  static void expect_unavailable(const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnavailable) << error.what();
      EXPECT_THAT(error.message(), HasSubstr("use device cpu"));
    }
  }
};

TEST_F(WithoutGpu, EverythingSaysWhatToDo) {
  EXPECT_EQ(why_no_gpu()->kind(), ErrorKind::kUnavailable);
  expect_unavailable([] { make_stream(0); });
  expect_unavailable([] { trireme::make_stream({DeviceKind::kCuda, 0}); });
  expect_unavailable([] { make_event(0); });
  expect_unavailable([] { trireme::make_event({DeviceKind::kCuda, 0}); });
  expect_unavailable([] { count_gpus(); });
  expect_unavailable([] { DeviceMemory(0, 16); });
  expect_unavailable([] { PeerMemory(0, IpcHandle{}); });
  expect_unavailable([] { device_id(0); });
  expect_unavailable([] { HostFlag(0); });
  expect_unavailable([] { CurrentDevice({DeviceKind::kCuda, 0}); });
}

TEST(CudaStream, OfACpuIsNone) {
  const auto stream = trireme::make_stream({});
  EXPECT_EQ(handle_of(*stream), nullptr);
  EXPECT_FALSE(is_capturing(*stream));
  const CurrentDevice nothing_changes({});
}

TEST(CudaMemory, CopiesOfACpusStreamAreDoneAtOnce) {
  const auto stream = trireme::make_stream({});
  std::array<std::byte, 4> from{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::array<std::byte, 4> to{};
  copy_bytes(to, from, *stream);
  EXPECT_EQ(to, from);
  copy_bytes({}, {}, *stream);
  EXPECT_THROW(copy_bytes(std::span(to).first(3), from, *stream), Error);
}

}  // namespace
}  // namespace trireme::cuda
