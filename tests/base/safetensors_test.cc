#include "trireme/base/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "trireme/error.h"

namespace trireme::safetensors {
namespace {

using testing::HasSubstr;

std::vector<std::byte> numbered(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

/// A file from header text and data, as another program may write it.
std::vector<std::byte> file(const std::string& header, std::size_t data_bytes,
                            std::int64_t claimed_length = -1) {
  const std::uint64_t length = claimed_length < 0 ? header.size() : claimed_length;
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

Error parse_error(const std::vector<std::byte>& bytes) {
  try {
    parse(bytes, "x.safetensors");
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kCancelled, "was accepted");
}

TEST(Safetensors, ReadsWhatItWrote) {
  std::vector<std::vector<std::byte>> data;
  std::vector<Tensor> tensors;
  for (int d = 0; d < 12; ++d) {
    const auto dtype = static_cast<Dtype>(d);
    data.push_back(numbered(size_bytes(dtype) * 6));
    tensors.push_back({"t" + std::to_string(d), dtype, {2, 3}, data.back()});
  }
  tensors.push_back({"empty", Dtype::kF32, {0, 5}, {}});
  data.push_back(numbered(4));
  tensors.push_back({"scalar", Dtype::kF32, {}, data.back()});

  const std::vector<std::byte> bytes = to_bytes(tensors, {{"made_by", "test"}});
  const Content content = parse(bytes, "x");
  ASSERT_EQ(content.tensors.size(), tensors.size());
  EXPECT_EQ(content.metadata, (Metadata{{"made_by", "test"}}));
  for (const Tensor& tensor : content.tensors) {
    const auto expected = std::find_if(tensors.begin(), tensors.end(),
                                       [&](const Tensor& t) { return t.name == tensor.name; });
    EXPECT_EQ(tensor.dtype, expected->dtype);
    EXPECT_EQ(tensor.shape, expected->shape);
    EXPECT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(), expected->bytes.begin(),
                           expected->bytes.end()));
    const auto offset = static_cast<std::size_t>(tensor.bytes.data() - bytes.data());
    EXPECT_TRUE(tensor.bytes.empty() ||
                offset % std::min<std::size_t>(8, size_bytes(tensor.dtype)) == 0);
  }
}

TEST(Safetensors, BytesDependOnNothingButTheContent) {
  const std::vector<std::byte> a = numbered(8), b = numbered(4);
  const Tensor x{"x", Dtype::kF32, {2}, a}, y{"y", Dtype::kI16, {2}, b};
  EXPECT_EQ(to_bytes({x, y}), to_bytes({y, x}));
  const std::vector<std::byte> bytes = to_bytes({x, y});
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + 8, bytes.size() - 8 - 12);
  EXPECT_EQ(text, R"({"x":{"data_offsets":[0,8],"dtype":"F32","shape":[2]},)"
                  R"("y":{"data_offsets":[8,12],"dtype":"I16","shape":[2]}}    )");
  EXPECT_EQ(text.size() % 8, 0U);
  EXPECT_EQ(to_bytes({}).size(), 16U);
  EXPECT_TRUE(parse(to_bytes({}), "x").tensors.empty());
}

TEST(Safetensors, AcceptsWhatOtherProgramsWrite) {
  const auto bytes =
      file(R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[2,5]},"e":{"dtype":"F64","shape":[0],)"
           R"("data_offsets":[2,2]},"a":{"dtype":"BF16","shape":[1,1],"data_offsets":[0,2]}})",
           5);
  const Content content = parse(bytes, "x");
  ASSERT_EQ(content.tensors.size(), 3U);
  EXPECT_EQ(content.tensors[0].name, "a");
  EXPECT_EQ(content.tensors[1].name, "e");
  EXPECT_EQ(content.tensors[2].name, "b");
}

TEST(Safetensors, RefusesBadHeaders) {
  const auto tensor = [](const std::string& fields, std::size_t data = 8) {
    return parse_error(file("{\"t\":{" + fields + "}}", data));
  };
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  EXPECT_EQ(tensor(good).kind(), ErrorKind::kCancelled) << "the unbroken one must be accepted";

  const std::pair<Error, const char*> cases[] = {
      {parse_error({}), "0 bytes, fewer than the 8"},
      {parse_error(numbered(7)), "fewer than the 8"},
      {parse_error(file("{}", 0, 3)), "only 2 follow"},
      {parse_error(file("{}", 0, 100'000'001)), "limit of 100 MB"},
      {parse_error(file("{}", 0, std::numeric_limits<std::int64_t>::max())), "limit of 100 MB"},
      {parse_error(file("{]", 0)), "not valid JSON"},
      {parse_error(file("[1]", 0)), "expected an object"},
      {parse_error(file("{}", 3)), "expected 0 bytes of data, got 3"},
      {tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,9])"), "within the 8 bytes"},
      {tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), "within the 8 bytes"},
      {tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), "expected 12 bytes"},
      {tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), "a begin and an end"},
      {tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), "whole number of at least 0"},
      {tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"), "too many"},
      {tensor(R"("dtype":"X","shape":[2],"data_offsets":[0,8])"), "expected one of F64"},
      {tensor(R"("dtype":"F32","shape":[2])"), "\"data_offsets\" is missing"},
      {tensor(good + R"(,"more":1)"), "unknown field \"more\""},
      {tensor(good, 12), "expected 8 bytes of data, got 12"},
      {parse_error(file("{\"a\":{" + good + "},\"b\":{" + good + "}}", 8)), "an overlap"},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), "a hole"},
      {parse_error(file("{\"t\":{" + good + "},\"t\":{" + good + "}}", 8)), "appears twice"},
      {parse_error(file(R"({"__metadata__":{"a":1}})", 0)), "expected a text"},
  };
  for (const auto& [error, part] : cases) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    EXPECT_THAT(error.message(), HasSubstr(part));
  }
  const Error foreign = tensor(R"("dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8])");
  EXPECT_EQ(foreign.kind(), ErrorKind::kUnavailable);
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::vector<std::byte> data = numbered(24);
  const auto bytes = to_bytes({{"a", Dtype::kF32, {2}, std::span(data).first(8)},
                               {"b", Dtype::kF64, {2}, std::span(data).last(16)}});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(parse_error({bytes.begin(), bytes.begin() + length}).kind(), ErrorKind::kCorruptData)
        << length;
  }
}

TEST(Safetensors, RefusesToWriteNonsense) {
  const std::vector<std::byte> data = numbered(8);
  const Tensor good{"a", Dtype::kF32, {2}, data};
  const std::vector<std::vector<Tensor>> cases = {
      {good, good},
      {{"__metadata__", Dtype::kF32, {2}, data}},
      {{"a", Dtype::kF32, {3}, data}},
      {{"a", Dtype::kF32, {-2}, data}},
  };
  for (const auto& tensors : cases) {
    try {
      to_bytes(tensors);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace trireme::safetensors
