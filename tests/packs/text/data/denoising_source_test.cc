#include "packs/text/data/denoising_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "packs/text/data/shard_writer.h"
#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

using data::Token;
using testing::HasSubstr;

class Denoising : public TextFolder {
 protected:
  static constexpr data::SpecialTokens kSpecial = {.end = 1, .first_sentinel = 999};

  /// Tokens 3, 4, .. 802, 3, ..; over several shards.
  TokenShards shards(std::int64_t count) const {
    ShardWriter writer(folder, "training", 100);
    for (std::int64_t i = 0; i < count; ++i) {
      writer.append({{static_cast<Token>(3 + i % 800)}}, 1);
    }
    return {folder, writer.finish(), 1000};
  }

  static data::CorruptedText read(const DenoisingSource& source, data::Sample sample) {
    data::CorruptedText text{.inputs = std::vector<Token>(source.lengths().inputs),
                             .targets = std::vector<Token>(source.lengths().targets)};
    const std::span<std::byte> destinations[] = {std::as_writable_bytes(std::span(text.inputs)),
                                                 std::as_writable_bytes(std::span(text.targets))};
    source.read(sample, destinations);
    return text;
  }
};

TEST_F(Denoising, SamplesRestoreTheRunsOfTokens) {
  const DenoisingSource source(shards(1000), {.inputs = 64, .special = kSpecial});
  const std::int64_t length = source.lengths().tokens;
  EXPECT_EQ(source.lengths(), data::longest_span_lengths(64));
  EXPECT_EQ(source.num_samples(), 1000 / length);
  EXPECT_EQ(source.fields()[0], (data::Field{"inputs", Dtype::kI32, {64}}));
  EXPECT_EQ(source.fields()[1], (data::Field{"targets", Dtype::kI32, {source.lengths().targets}}));
  std::set<std::vector<Token>> inputs;
  for (std::int64_t i = 0; i < source.num_samples(); ++i) {
    for (const std::int64_t visit : {0, 1, 2}) {
      const data::CorruptedText text = source.text_of({i, visit});
      EXPECT_EQ(text, read(source, {i, visit}));
      const std::vector<Token> tokens = data::restore_spans(text, kSpecial);
      ASSERT_EQ(static_cast<std::int64_t>(tokens.size()), length);
      for (std::int64_t t = 0; t < length; ++t) EXPECT_EQ(tokens[t], 3 + (i * length + t) % 800);
      inputs.insert(text.inputs);
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(inputs.size()), source.num_samples() * 3);
}

TEST_F(Denoising, IdentityTellsTokensAndOptionsApart) {
  const TokenShards tokens = shards(1000);
  std::set<std::string> identities;
  const DenoisingOptions base{.inputs = 64, .special = kSpecial};
  std::vector<DenoisingOptions> all(7, base);
  all[1].inputs = 65;
  all[2].spans.noise_density = 0.2;
  all[3].spans.mean_span = 4;
  all[4].special.end = 2;
  all[5].special.first_sentinel = 998;
  all[6].seed = 1;
  for (const DenoisingOptions& options : all) {
    identities.insert(DenoisingSource(tokens, options).identity());
  }
  identities.insert(DenoisingSource(shards(999), base).identity());
  EXPECT_EQ(identities.size(), 8U);
  EXPECT_EQ(DenoisingSource(tokens, base).identity(), DenoisingSource(tokens, base).identity());
}

TEST_F(Denoising, RefusesTooLittleText) {
  const std::int64_t needed = data::longest_span_lengths(64).tokens;
  const DenoisingOptions options{.inputs = 64, .special = kSpecial};
  EXPECT_EQ(DenoisingSource(shards(needed), options).num_samples(), 1);
  for (const std::int64_t count : {std::int64_t{0}, needed - 1}) {
    const Error error = error_of([&] { DenoisingSource(shards(count), options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("only " + std::to_string(count)));
  }
}

TEST_F(Denoising, RefusesWhatDoesNotFit) {
  const TokenShards tokens = shards(1000);
  EXPECT_THAT(
      error_of([&] { DenoisingSource(tokens, {.inputs = 1, .special = kSpecial}); }).message(),
      HasSubstr("hold no text"));
  data::SpecialTokens few = kSpecial;
  few.num_sentinels = 2;
  EXPECT_THAT(error_of([&] { DenoisingSource(tokens, {.inputs = 64, .special = few}); }).message(),
              HasSubstr("only 2 sentinels"));
  const DenoisingSource source(tokens, {.inputs = 64, .special = kSpecial});
  EXPECT_EQ(error_of([&] { read(source, {source.num_samples(), 0}); }).kind(),
            ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { source.text_of({-1, 0}); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { source.read({0, 0}, {}); }).kind(), ErrorKind::kInvalidArgument);
  std::vector<std::byte> small(3);
  const std::span<std::byte> two[] = {small, small};
  EXPECT_EQ(error_of([&] { source.read({0, 0}, two); }).kind(), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace trireme::text
