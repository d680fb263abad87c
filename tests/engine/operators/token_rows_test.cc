#include "trireme/engine/operators/token_rows.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "trireme/error.h"

namespace trireme::operators {
namespace {

std::vector<std::int64_t> numbers(const at::Tensor& tensor) {
  const auto* data = tensor.const_data_ptr<std::int64_t>();
  return {data, data + tensor.numel()};
}

TEST(TokenRows, AreThoseBeforeThePadding) {
  for (const auto type : {at::kInt, at::kLong}) {
    const TokenRows tokens = token_rows(torch::tensor({2, 0, 3}, type), 3);
    EXPECT_THAT(numbers(tokens.rows), testing::ElementsAre(0, 1, 6, 7, 8));
    EXPECT_THAT(numbers(tokens.offsets), testing::ElementsAre(0, 2, 2, 5));
  }
}

TEST(TokenRows, OfNoTokensAreNone) {
  const TokenRows none = token_rows(torch::tensor({0, 0}), 4);
  EXPECT_EQ(none.rows.sizes(), std::vector<std::int64_t>{0});
  EXPECT_THAT(numbers(none.offsets), testing::ElementsAre(0, 0, 0));
  EXPECT_THAT(numbers(token_rows(at::empty({0}, at::kLong), 4).offsets), testing::ElementsAre(0));
}

TEST(TokenRows, PackAndPadAgain) {
  const auto lengths = torch::tensor({2, 0, 3});
  const auto tokens = token_rows(lengths, 3);
  const auto x = at::rand({3, 3, 5}).requires_grad_();
  const auto packed = pack_rows(x, tokens);
  EXPECT_EQ(packed.sizes(), (std::vector<std::int64_t>{5, 5}));
  EXPECT_TRUE(at::equal(packed[2], x[2][0]));
  const auto is_token = (at::arange(3) < lengths.unsqueeze(1)).unsqueeze(-1);
  EXPECT_TRUE(at::equal(unpack_rows(packed, tokens, x), x * is_token));
  (unpack_rows(packed * 2, tokens, x) * 3).sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), (6 * is_token).to(at::kFloat).expand_as(x)));
}

TEST(TokenRows, ALengthOutsideIsNamed) {
  for (const int length : {-1, 5}) {
    try {
      token_rows(torch::tensor({4, length}), 4);
      ADD_FAILURE() << length;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.message(),
                  testing::HasSubstr("lengths[1] must be in [0, 4], is " + std::to_string(length)));
    }
  }
}

}  // namespace
}  // namespace trireme::operators
