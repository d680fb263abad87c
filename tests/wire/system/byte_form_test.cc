// Each form reads back what it wrote, and refuses the rest.

#include "trireme/wire/system/byte_form.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/wire/system/threads.h"

namespace trireme::transport::test {
namespace {

void expect_corrupt(const std::function<void()>& call) {
  EXPECT_EQ(error_of_call(call).kind(), ErrorKind::kCorruptData);
}

TEST(ByteForm, ReadsWhatWasWritten) {
  const std::vector<std::byte> bytes = ByteWriter()
                                           .integer(std::uint16_t{0x0102})
                                           .integer(std::int64_t{-5})
                                           .text(std::string("a\0b", 3))
                                           .take();
  EXPECT_EQ(bytes.size(), 2U + 8U + 4U + 3U);
  EXPECT_EQ(bytes[0], std::byte{2});  // little-endian
  ByteReader reader(bytes);
  EXPECT_EQ(reader.integer<std::uint16_t>(), 0x0102);
  EXPECT_EQ(reader.integer<std::int64_t>(), -5);
  expect_corrupt([&] { reader.finish(); });
  EXPECT_EQ(reader.text(), std::string("a\0b", 3));
  reader.finish();
  expect_corrupt([&] { reader.integer<std::uint8_t>(); });
}

TEST(ErrorForm, KeepsKindTextAndContext) {
  Error error(ErrorKind::kCorruptData, "bad file");
  error.add({.rank = 1, .operation = "load", .step = -3});
  const Error back = error_from_bytes(error_to_bytes(error));
  EXPECT_EQ(back.kind(), ErrorKind::kCorruptData);
  EXPECT_STREQ(back.what(), error.what());
  EXPECT_FALSE(back.context().peer.has_value());

  const Error caused(ErrorKind::kIo, "cannot load", error);
  EXPECT_EQ(flattened(caused).message(), std::string("cannot load; caused by ") + error.what());
  EXPECT_STREQ(flattened(error).what(), error.what());
}

TEST(ErrorForm, RefusesOtherBytes) {
  std::vector<std::byte> bytes = error_to_bytes(Error(ErrorKind::kIo, "text"));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    expect_corrupt([&] { error_from_bytes(std::span(bytes).first(length)); });
  }
  bytes[0] = std::byte{255};
  expect_corrupt([&] { error_from_bytes(bytes); });
}

}  // namespace
}  // namespace trireme::transport::test
