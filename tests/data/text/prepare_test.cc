#include "trireme/data/text/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/text/text_folder.h"
#include "trireme/data/text/denoising_source.h"

namespace trireme::text {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class Prepare : public TextFolder {
 protected:
  void SetUp() override {
    TextFolder::SetUp();
    for (int i = 0; i < 40; ++i) {
      write("text/part" + std::to_string(i % 3) + "/" + std::to_string(i) + ".py",
            sample_code(i, 8));
    }
  }

  PrepareOptions options() const {
    return {.inputs = {folder / "text"},
            .tokenizer = {.num_pieces = 500},
            .held_out_fraction = 0.2,
            .cache = folder / "cache"};
  }

  static std::vector<Token> all_tokens(const TokenShards& shards) {
    std::vector<Token> tokens(static_cast<std::size_t>(shards.num_tokens()));
    shards.read(0, tokens);
    return tokens;
  }

  /// Documents of a split, decoded.
  static std::vector<std::string> documents(const Prepared& prepared, const TokenShards& shards) {
    std::vector<std::string> texts;
    std::vector<Token> document;
    for (const Token token : all_tokens(shards)) {
      if (token != prepared.tokenizer.end()) {
        document.push_back(token);
        continue;
      }
      texts.push_back(prepared.tokenizer.decode(document));
      document.clear();
    }
    EXPECT_TRUE(document.empty()) << "no end token after the last document";
    return texts;
  }

  const Logger logger{LogLevel::kWarning};
};

TEST_F(Prepare, EveryDocumentIsInOneSplit) {
  const Prepared prepared = prepare(options(), logger);
  EXPECT_FALSE(prepared.was_cached);
  EXPECT_EQ(prepared.report.documents, 40);
  std::vector<std::string> texts = documents(prepared, prepared.training);
  const std::vector<std::string> held_out = documents(prepared, prepared.held_out);
  EXPECT_EQ(static_cast<std::int64_t>(texts.size()), prepared.training.num_documents());
  EXPECT_GT(held_out.size(), 0U);
  texts.insert(texts.end(), held_out.begin(), held_out.end());
  std::vector<std::string> expected;
  for (int i = 0; i < 40; ++i) expected.push_back(sample_code(i, 8));
  EXPECT_THAT(texts, testing::UnorderedElementsAreArray(expected));
  prepared.training.verify();
}

TEST_F(Prepare, TheSecondTimeOpensTheCache) {
  const Prepared first = prepare(options(), logger);
  const Prepared second = prepare(options(), logger);
  EXPECT_TRUE(second.was_cached);
  EXPECT_EQ(first.folder, second.folder);
  EXPECT_EQ(first.training.sha256(), second.training.sha256());
  EXPECT_EQ(first.report, second.report);
  write("text/part0/new.py", "print(1)\n");
  const Prepared third = prepare(options(), logger);
  EXPECT_FALSE(third.was_cached) << "a file more is another text";
  EXPECT_EQ(third.report.documents, 41);
}

TEST_F(Prepare, ThreadsDoNotChangeTheResult) {
  std::vector<std::string> hashes;
  for (const int threads : {1, 2, 7}) {
    PrepareOptions one = options();
    one.num_threads = threads;
    one.cache = folder / ("cache" + std::to_string(threads));
    const Prepared prepared = prepare(one, logger);
    hashes.push_back(prepared.training.sha256() + prepared.held_out.sha256() +
                     prepared.tokenizer.sha256());
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
}

TEST_F(Prepare, FeedsTheDenoisingSource) {
  const Prepared prepared = prepare(options(), logger);
  const DenoisingOptions denoising{.inputs = 64, .special = prepared.tokenizer.special()};
  const DenoisingSource source(prepared.training, denoising);
  const data::SpanLengths lengths = source.lengths();
  EXPECT_EQ(source.num_samples(), prepared.training.num_tokens() / lengths.tokens);
  const std::vector<Token> tokens = all_tokens(prepared.training);
  std::vector<data::CorruptedText> visits;
  for (const std::int64_t visit : {0, 1}) {
    for (std::int64_t i = 0; i < source.num_samples(); ++i) {
      data::CorruptedText text{.inputs = std::vector<Token>(lengths.inputs),
                               .targets = std::vector<Token>(lengths.targets)};
      const std::span<std::byte> destinations[] = {std::as_writable_bytes(std::span(text.inputs)),
                                                   std::as_writable_bytes(std::span(text.targets))};
      source.read({i, visit}, destinations);
      visits.push_back(text);
    }
  }
  EXPECT_NE(visits[0], visits[source.num_samples()]) << "a second visit hides other spans";
}

}  // namespace
}  // namespace trireme::text
