#include "trireme/dtype.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Dtype, NamesParseBack) {
  for (std::size_t i = 0; i < internal::kDtypeFacts.size(); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    EXPECT_EQ(parse_dtype(to_text(dtype)), dtype) << to_text(dtype);
  }
  for (const char* bad : {"", "f3", "f322", "F32", "float"}) {
    EXPECT_EQ(parse_dtype(bad), std::nullopt) << bad;
  }
}

TEST(Dtype, NamesAndSizesBelongToTheirEnumerator) {
  EXPECT_EQ(to_text(Dtype::kF64), "f64");
  EXPECT_EQ(to_text(Dtype::kBf16), "bf16");
  EXPECT_EQ(to_text(Dtype::kU8), "u8");
  EXPECT_EQ(to_text(Dtype::kBool), "bool");
  EXPECT_EQ(to_text(Dtype::kC128), "c128");
  EXPECT_EQ(size_bytes(Dtype::kF64), 8u);
  EXPECT_EQ(size_bytes(Dtype::kF16), 2u);
  EXPECT_EQ(size_bytes(Dtype::kI64), 8u);
  EXPECT_EQ(size_bytes(Dtype::kBool), 1u);
  EXPECT_EQ(size_bytes(Dtype::kC64), 8u);
  EXPECT_EQ(size_bytes(Dtype::kC128), 16u);
}

}  // namespace
}  // namespace trireme
