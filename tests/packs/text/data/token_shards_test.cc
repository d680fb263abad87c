#include "packs/text/data/token_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "packs/text/data/shard_writer.h"
#include "tests/base/document_form.h"
#include "tests/packs/text/data/text_folder.h"
#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"

namespace trireme::text {
namespace {

using data::Token;
using testing::HasSubstr;

constexpr std::int64_t kVocabulary = 1000;

class Shards : public TextFolder {
 protected:
  /// Writes 0, 1, .. count - 1, some at a time.
  TokenSplit write_numbers(std::int64_t count, std::size_t shard_tokens) const {
    ShardWriter writer(folder, "training", shard_tokens);
    std::vector<Token> tokens(count);
    std::iota(tokens.begin(), tokens.end(), 0);
    for (std::span<const Token> rest = tokens; !rest.empty();) {
      const auto part = rest.first(std::min<std::size_t>(7, rest.size()));
      writer.append(part, 1);
      rest = rest.subspan(part.size());
    }
    return writer.finish();
  }

  TokenShards open(const TokenSplit& split) const { return {folder, split, kVocabulary}; }
};

TEST_F(Shards, ReadWhatWasWrittenAtAnyPlace) {
  for (const std::int64_t count : {0, 1, 9, 10, 11, 30, 35}) {
    const TokenSplit split = write_numbers(count, 10);
    EXPECT_EQ(split.shards.size(), static_cast<std::size_t>((count + 9) / 10));
    const TokenShards shards = open(split);
    EXPECT_EQ(shards.num_tokens(), count);
    EXPECT_EQ(shards.num_documents(), (count + 6) / 7);
    for (std::int64_t begin = 0; begin <= count; ++begin) {
      for (std::int64_t length = 0; length <= count - begin; ++length) {
        std::vector<Token> tokens(length), expected(length);
        std::iota(expected.begin(), expected.end(), static_cast<Token>(begin));
        shards.read(begin, tokens);
        ASSERT_EQ(tokens, expected);
      }
    }
    shards.verify();
    std::vector<Token> beyond(1);
    for (const std::int64_t begin : {count, std::int64_t{-1}, std::int64_t{1} << 62}) {
      EXPECT_EQ(error_of([&] { shards.read(begin, beyond); }).kind(), ErrorKind::kInvalidArgument);
    }
  }
}

TEST_F(Shards, FullOnesHave64MiB) {
  ShardWriter writer(folder, "training");
  writer.append(std::vector<Token>(kShardTokens + 1, 5), 1);
  const TokenSplit split = writer.finish();
  ASSERT_EQ(split.shards.size(), 2U);
  EXPECT_LE(split.shards[0].bytes, 64 << 20);
  EXPECT_GT(split.shards[0].bytes, (64 << 20) - 1024);
}

TEST_F(Shards, AnotherLengthIsRefused) {
  const TokenSplit split = write_numbers(25, 10);
  const auto path = folder / split.shards[1].file;
  const std::string bytes = read_file(path);
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, bytes.size() - 1}) {
    write_file_atomically(path, bytes.substr(0, length));
    const Error error = error_of([&] { open(split); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), HasSubstr(path.string()));
  }
  write_file_atomically(path, bytes + "x");
  EXPECT_EQ(error_of([&] { open(split); }).kind(), ErrorKind::kCorruptData);
  std::filesystem::remove(path);
  EXPECT_EQ(error_of([&] { open(split); }).kind(), ErrorKind::kIo);
}

TEST_F(Shards, ChangedTokensAreFound) {
  const TokenSplit split = write_numbers(25, 10);
  const auto path = folder / split.shards[1].file;
  std::string bytes = read_file(path);
  bytes[bytes.size() - 4] = 1;  // still in the vocabulary
  write_file_atomically(path, bytes);
  const TokenShards small = open(split);
  EXPECT_THAT(error_of([&] { small.verify(); }).message(), HasSubstr(path.string()));
  bytes[bytes.size() - 1] = static_cast<char>(0x80);
  write_file_atomically(path, bytes);
  const TokenShards negative = open(split);
  std::vector<Token> tokens(25);
  const Error error = error_of([&] { negative.read(0, tokens); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("not in the vocabulary"));
}

TEST_F(Shards, AnotherTensorIsRefused) {
  TokenSplit split = write_numbers(10, 10);
  const std::vector<std::byte> data(40);
  const auto bytes = safetensors::to_bytes({{"numbers", Dtype::kI32, {10}, data}});
  write_file_atomically(folder / split.shards[0].file, bytes);
  split.shards[0].bytes = static_cast<std::int64_t>(bytes.size());
  EXPECT_THAT(error_of([&] { open(split); }).message(), HasSubstr("one i32 tensor 'tokens'"));
}

TokenIndex sample_index() {
  const std::string hash(64, 'a');
  return {.tokenizer_sha256 = hash,
          .vocabulary_size = 32'100,
          .report = {.files = 3, .documents = 3, .empty = 1},
          .training = {2, {{"training-00000.safetensors", 4096, 900, hash}}},
          .held_out = {1, {{"held_out-00000.safetensors", 512, 100, hash}}}};
}

constexpr forms::DocumentForm<TokenIndex> kIndexForm{
    kTokensDocument, [](const TokenIndex& index) { return to_json(index); }, token_index_from_json,
    save, load_token_index};

TEST(TokenIndex, ComesBackTheSame) {
  forms::expect_round_trip(kIndexForm, sample_index());
  forms::expect_round_trip(kIndexForm,
                           {.tokenizer_sha256 = std::string(64, '0'), .vocabulary_size = 1});
  forms::expect_files(kIndexForm, sample_index());
  forms::expect_example(kIndexForm);
}

TEST(TokenIndex, RefusesNonsense) {
  const auto complaint = [](const std::function<void(Json&)>& change) {
    return forms::complaint(kIndexForm, sample_index(), change);
  };
  const auto shard = [&](const char* field, const Json& value) {
    return complaint([&](Json& json) { json["training"]["shards"][0][field] = value; });
  };
  EXPECT_EQ(complaint([](Json&) {}), "");
  for (const char* name : {"../x", "/etc/passwd", "", ".", "..", ".x"}) {
    EXPECT_THAT(shard("file", name), HasSubstr("the name of a file")) << name;
  }
  EXPECT_THAT(shard("bytes", -1), HasSubstr("shards[0].bytes"));
  EXPECT_THAT(shard("tokens", 0), HasSubstr("shards[0].tokens"));
  EXPECT_THAT(shard("tokens", std::int64_t{1} << 62), HasSubstr("shards[0].tokens"));
  EXPECT_THAT(shard("sha256", "abc"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(complaint([](Json& json) { json["vocabulary_size"] = 0; }), HasSubstr("vocabulary"));
  EXPECT_THAT(complaint([](Json& json) { json["report"].erase("cut"); }), HasSubstr("cut"));
  EXPECT_THAT(complaint([](Json& json) { json["more"] = 1; }), HasSubstr("more"));
}

}  // namespace
}  // namespace trireme::text
