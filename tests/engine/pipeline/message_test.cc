#include "trireme/engine/pipeline/message.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <limits>

#include "trireme/error.h"

namespace trireme::pipeline {
namespace {

void expect_same(const at::Tensor& tensor) {
  const at::Tensor message = pack(tensor);
  EXPECT_EQ(message.scalar_type(), at::kByte);
  const at::Tensor back = unpack(message);
  EXPECT_EQ(back.scalar_type(), tensor.scalar_type());
  EXPECT_EQ(back.sizes(), tensor.sizes());
  EXPECT_EQ(back.strides(), tensor.strides());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(back.data_ptr()) % 64, 0U);
  EXPECT_TRUE(torch::equal(back, tensor)) << tensor.scalar_type();
}

TEST(Message, KeepsEveryDtype) {
  for (const at::ScalarType dtype :
       {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kBFloat16, at::kFloat,
        at::kDouble, at::kBool, at::kComplexFloat, at::kComplexDouble}) {
    expect_same(torch::arange(1, 25).reshape({2, 3, 4}).to(dtype));
    expect_same(torch::ones({}, dtype));
    expect_same(torch::empty({3, 0, 2}, dtype));
  }
}

TEST(Message, KeepsStrides) {
  const auto x = torch::randn({4, 6, 5, 3});
  expect_same(x.permute({2, 0, 3, 1}));
  expect_same(x.contiguous(at::MemoryFormat::ChannelsLast));
  expect_same(x.narrow(1, 2, 3));
  expect_same(x.slice(0, 1, 4, 2));
  expect_same(torch::randn({3, 1}).expand({3, 5}));
  expect_same(torch::randn({1}).expand({2, 0, 7}));
  expect_same(torch::randn({2, 3}).select(1, 2));
}

TEST(Message, OfAnExpandedTensorIsSmall) {
  const at::Tensor message = pack(torch::ones({1}).expand({1000}));
  EXPECT_EQ(message.nbytes(), kMessageHeaderBytes + sizeof(float));
}

TEST(Message, SharesNoMemoryAndNoGradient) {
  const auto x = torch::ones({3}, torch::requires_grad());
  const at::Tensor back = unpack(pack(x));
  EXPECT_FALSE(back.requires_grad());
  back.zero_();
  EXPECT_EQ(x.sum().item<float>(), 3);
}

TEST(Message, MayBeOfNoTensor) {
  const at::Tensor message = pack({});
  EXPECT_EQ(message.nbytes(), kMessageHeaderBytes);
  EXPECT_FALSE(unpack(message).defined());
}

TEST(Message, OutlivesWhoUnpacksIt) {
  at::Tensor message = pack(torch::ones({1000}));
  const at::Tensor back = unpack(message);
  message.reset();
  EXPECT_EQ(back.sum().item<float>(), 1000);
}

TEST(Message, RefusesTooManyDimensions) {
  try {
    pack(torch::ones(std::vector<std::int64_t>(17, 1)));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  }
}

void expect_corrupt(const at::Tensor& message, const std::string& what) {
  try {
    unpack(message);
    ADD_FAILURE() << "accepted: " << what;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << what << ": " << error.what();
  }
}

TEST(Message, RefusesBytesThatAreNone) {
  const at::Tensor good = pack(torch::ones({4, 3}));
  const auto size = static_cast<std::int64_t>(good.nbytes());
  expect_corrupt(make_message(0), "nothing");
  expect_corrupt(good.narrow(0, 0, 100).clone(), "half a header");
  expect_corrupt(good.narrow(0, 0, size - 1).clone(), "a byte less");
  expect_corrupt(torch::cat({good, good}), "bytes behind");
  expect_corrupt(torch::zeros_like(good), "zeros");
}

/// The message with 8 bytes of its header replaced; offsets as in message.cc.
at::Tensor with(const at::Tensor& message, std::size_t offset, std::int64_t number) {
  const at::Tensor result = message.clone();
  std::memcpy(static_cast<std::byte*>(result.data_ptr()) + offset, &number, sizeof number);
  return result;
}

TEST(Message, RefusesSizesThatItDoesNotHave) {
  constexpr std::size_t kSizes = 8;
  constexpr std::size_t kStrides = kSizes + std::size_t{16} * 8;
  const at::Tensor good = pack(torch::ones({4, 3}));
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{5}, std::int64_t{1} << 40,
                                    std::numeric_limits<std::int64_t>::max()}) {
    expect_corrupt(with(good, kSizes, number), "size " + std::to_string(number));
    expect_corrupt(with(good, kStrides, number), "stride " + std::to_string(number));
  }
  expect_corrupt(with(with(good, kSizes, (std::int64_t{1} << 62) + 1), kStrides, 4), "overflow");
  expect_corrupt(with(pack(torch::ones({1}).expand({4, 4})), kSizes, std::int64_t{1} << 62),
                 "overflow of what is expanded");
  expect_corrupt(with(pack(torch::ones({0, 3})), kSizes + 8, -1), "negative behind a zero");
}

// It was looked up in a table behind whose end it lay.
TEST(Message, RefusesAnUnknownDtype) {
  at::Tensor message = pack(torch::ones({4, 3}));
  message[5] = 12;
  expect_corrupt(message, "dtype 12");
}

TEST(Message, RefusesAnyByteOfTheHeaderWithoutHarm) {
  const at::Tensor good = pack(torch::ones({4, 3}));
  for (std::int64_t i = 0; i < 32; ++i) {
    for (const int value : {1, 17, 128, 255}) {
      const at::Tensor bad = good.clone();
      bad[i] = value;
      try {
        unpack(bad);  // what is accepted lies inside the message
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << "byte " << i << ": " << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace trireme::pipeline
