#include "packs/text/data/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "packs/text/data/denoising_source.h"
#include "packs/text/data/text_sample.h"
#include "tests/packs/text/data/text_folder.h"
#include "trireme/base/random.h"

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
      visits.push_back(source.text_of({i, visit}));
      EXPECT_THAT(data::restore_spans(visits.back(), denoising.special),
                  testing::ElementsAreArray(tokens.data() + i * lengths.tokens, lengths.tokens));
    }
  }
  EXPECT_NE(visits[0], visits[source.num_samples()]) << "a second visit hides other spans";
}

TEST_F(Prepare, AFoundFolderIsNotWrittenTo) {
  const Prepared first = prepare(options(), logger);
  fs::path lock = first.folder;
  lock += ".lock";
  ASSERT_TRUE(fs::remove(lock));
  EXPECT_TRUE(prepare(options(), logger).was_cached);
  EXPECT_FALSE(fs::exists(lock)) << "a cache that is read only has no place for it";
}

TEST_F(Prepare, AnEmptySplitIsAnError) {
  PrepareOptions one = options();
  one.inputs = {folder / "text/part0/0.py"};
  const Error error = error_of([&] { prepare(one, logger); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("split"));
  for (const double fraction : {0.0, 1.0, -1.0}) {
    one.held_out_fraction = fraction;
    EXPECT_THAT(error_of([&] { prepare(one, logger); }).message(), HasSubstr("between 0 and 1"));
  }
}

TEST_F(Prepare, AfterAnErrorNothingIsPublished) {
  PrepareOptions broken = options();
  broken.inputs.push_back(write("wrong.jsonl", "{\"text\": \"one\"}\nnot json\n"));
  const Error error = error_of([&] { prepare(broken, logger); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("wrong.jsonl line 2"));
  for (const auto& entry : fs::directory_iterator(folder / "cache")) {
    EXPECT_THAT(entry.path().extension().string(), testing::AnyOf(".lock", ".partial"));
  }
}

TEST_F(Prepare, ACacheThatCannotBeReadIsAnError) {
  PrepareOptions one = options();
  one.cache = folder / std::string(300, 'x');  // longer than a name may be
  EXPECT_EQ(error_of([&] { prepare(one, logger); }).kind(), ErrorKind::kIo);
}

TEST_F(Prepare, WhatCannotBeRemovedIsNotPublished) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may remove everything";
  const Prepared first = prepare(options(), logger);
  fs::remove(first.folder / "tokens.json");
  fs::permissions(first.folder, fs::perms::owner_read | fs::perms::owner_exec);
  const Error error = error_of([&] { prepare(options(), logger); });
  fs::permissions(first.folder, fs::perms::owner_all);
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.message(), HasSubstr("cannot remove"));
}

TEST_F(Prepare, AGivenTokenizerIsUsed) {
  const Prepared first = prepare(options(), logger);
  PrepareOptions given = options();
  given.tokenizer_model = first.folder / "tokenizer.model";
  const Prepared second = prepare(given, logger);
  EXPECT_NE(first.folder, second.folder);
  EXPECT_EQ(first.tokenizer.sha256(), second.tokenizer.sha256());
  EXPECT_EQ(first.training.sha256(), second.training.sha256());
}

TEST_F(Prepare, ADamagedFolderIsRefused) {
  const Prepared first = prepare(options(), logger);
  write(fs::relative(first.folder / "tokenizer.model", folder), "no model");
  EXPECT_EQ(error_of([&] { prepare(options(), logger); }).kind(), ErrorKind::kCorruptData);
  write(fs::relative(first.folder / "tokens.json", folder), "{}");
  const Error error = error_of([&] { prepare(options(), logger); });
  EXPECT_THAT(error.message(), HasSubstr("tokens.json"));
}

TEST(TextSample, KeepsARandomPartInOrder) {
  const auto sample_of = [](std::int64_t bytes, std::uint64_t seed) {
    TextSample sample(bytes, seed);
    for (int i = 0; i < 1000; ++i) sample.add(std::to_string(1000 + i));
    return sample.finish();
  };
  const std::vector<std::string> some = sample_of(400, 0);
  EXPECT_EQ(some.size(), 100U);
  EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
  EXPECT_EQ(some, sample_of(400, 0));
  EXPECT_NE(some, sample_of(400, 1));
  EXPECT_EQ(sample_of(1'000'000, 0).size(), 1000U);
  EXPECT_EQ(sample_of(1, 0).size(), 1U);
  EXPECT_TRUE(TextSample(1, 0).finish().empty());
}

/// Of draws in order, 6, 6 and 3 long: the third would fit once the second did not.
TEST(TextSample, AShortDocumentDoesNotOvertakeALongerOne) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<std::uint64_t> draws;
    for (std::uint64_t index = 0; index < 3; ++index) draws.push_back(stream_seed(seed, {index}));
    TextSample sample(10, seed);
    std::string lowest;
    for (const std::uint64_t draw : draws) {
      const auto rank = std::count_if(draws.begin(), draws.end(),
                                      [&](std::uint64_t other) { return other < draw; });
      const std::string text(rank == 2 ? 3 : 6, static_cast<char>('a' + rank));
      if (rank == 0) lowest = text;
      sample.add(text);
    }
    EXPECT_THAT(sample.finish(), testing::ElementsAre(lowest)) << "seed " << seed;
  }
}

TEST(TextReport, SaysWhatIsNotZero) {
  EXPECT_EQ(to_text(TextReport{.files = 2, .documents = 3, .repaired = 1, .replaced = 7}),
            "2 files, 3 documents, 1 not UTF-8, 7 replaced characters");
  EXPECT_EQ(to_text(TextReport{}), "nothing");
}

}  // namespace
}  // namespace trireme::text
