#include "packs/text/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

using testing::HasSubstr;

Tokenizer code_tokenizer(std::int32_t num_pieces = 600) {
  std::vector<std::string> texts;
  for (int i = 0; i < 20; ++i) texts.push_back(sample_code(i, 10));
  return Tokenizer::train(texts, {.num_pieces = num_pieces});
}

std::vector<std::string> odd_texts() {
  std::string all_bytes;
  for (int c = 1; c < 128; ++c) all_bytes += static_cast<char>(c);
  return {
      "",
      " ",
      "\n",
      "\t",
      "  two blanks  before, within and after  ",
      "def f(x):\n    if x:\n\t\treturn  1\r\n\n\n        pass   ",
      std::string(5000, ' '),
      std::string(5000, '\n'),
      all_bytes,
      std::string("nul \0 within", 12),
      "caf\u00e9 na\u00efve \u4e2d\u6587 \U0001F600 e\u0301",
      "\u2581 one \u2581\u2581 two \u2581",
      "\u2585 \u2047 \ufffd \ufeff \u00a0\u3000\u200b",
      "<pad></s><unk><s><0x41><extra_id_0>",
  };
}

TEST(Tokenizer, GivesBackEveryText) {
  const Tokenizer tokenizer = code_tokenizer();
  std::vector<std::string> texts = odd_texts();
  texts.push_back(sample_code(99, 50));
  for (const std::string& text : texts) {
    const std::vector<Token> tokens = tokenizer.encode(text);
    EXPECT_EQ(tokenizer.decode(tokens), text);
    for (const Token token : tokens) {
      EXPECT_GT(token, 2) << "padding, end or unknown in " << text.substr(0, 40);
      EXPECT_LT(token, tokenizer.num_pieces());
    }
  }
}

TEST(Tokenizer, HasTheIdsOfT5) {
  const Tokenizer tokenizer = code_tokenizer();
  EXPECT_EQ(tokenizer.padding(), 0);
  EXPECT_EQ(tokenizer.end(), 1);
  EXPECT_EQ(tokenizer.vocabulary_size(), tokenizer.num_pieces() + 100);
  const data::SpecialTokens special = tokenizer.special();
  EXPECT_EQ(special.end, 1);
  EXPECT_EQ(special.first_sentinel, tokenizer.vocabulary_size() - 1);
  EXPECT_EQ(special.num_sentinels, 100);
  const std::vector<Token> x = tokenizer.encode("x");
  std::vector<Token> tokens = {special.first_sentinel, x[0], special.first_sentinel - 99, 1, 0};
  EXPECT_EQ(tokenizer.decode(tokens), "<extra_id_0>x<extra_id_99>");
  for (const Token wrong : {-1, tokenizer.vocabulary_size()}) {
    const Error error = error_of([&] { tokenizer.decode({{wrong}}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr(std::to_string(wrong)));
  }
}

TEST(Tokenizer, LearnsIndentation) {
  std::vector<std::string> texts;
  for (int depth = 0; depth < 40; ++depth) {
    texts.push_back(std::string(4 * depth, ' ') + "return " + sample_code(depth, 1));
  }
  const Tokenizer tokenizer = Tokenizer::train(texts, {.num_pieces = 400});
  EXPECT_EQ(tokenizer.encode("                return").size(),
            tokenizer.encode("return").size() + 1);
}

TEST(Tokenizer, TrainingRepeatsAndIsQuiet) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const Tokenizer one = code_tokenizer();
  const Tokenizer two = code_tokenizer();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(one.bytes(), two.bytes());
  EXPECT_EQ(one.sha256(), two.sha256());
}

TEST(Tokenizer, ShortTextsGiveFewerPieces) {
  const std::vector<std::string> texts = {"one two three, one two three, and four"};
  const Tokenizer tokenizer = Tokenizer::train(texts, {.num_pieces = 5000});
  EXPECT_LT(tokenizer.num_pieces(), 400);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("one zebra")), "one zebra");
}

TEST(Tokenizer, RefusesWhatCannotBeTrained) {
  const auto refusal = [](std::vector<std::string> texts, TokenizerOptions options) {
    const Error error = error_of([&] { Tokenizer::train(texts, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
    return error.message();
  };
  EXPECT_THAT(refusal({}, {}), HasSubstr("no text"));
  EXPECT_THAT(refusal({"", ""}, {}), HasSubstr("no text"));
  EXPECT_THAT(refusal({"abc"}, {.num_pieces = 0}), HasSubstr("at least one piece"));
  EXPECT_THAT(refusal({"abc"}, {.num_pieces = 100}), HasSubstr("100 pieces"));
  EXPECT_THAT(refusal({"abc"}, {.character_coverage = 0}), HasSubstr("coverage"));
  for (const char* text : {"\u2585", "\t", "\n", " ", "\u2581"}) {
    try {
      const Tokenizer tokenizer = Tokenizer::train(std::vector<std::string>{text});
      EXPECT_EQ(tokenizer.decode(tokenizer.encode("any \u2581 x")), "any \u2581 x");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    }
  }
}

using TokenizerFiles = TextFolder;

TEST_F(TokenizerFiles, LoadsWhatWasTrained) {
  const Tokenizer tokenizer = code_tokenizer();
  const auto path = write("a.model", tokenizer.bytes());
  const Tokenizer loaded = Tokenizer::load(path);
  EXPECT_EQ(loaded.sha256(), tokenizer.sha256());
  EXPECT_EQ(loaded.encode(sample_code(5, 5)), tokenizer.encode(sample_code(5, 5)));
}

TEST_F(TokenizerFiles, RefusesWhatIsNoModel) {
  const std::string model = code_tokenizer().bytes();
  for (const std::string& bytes :
       {std::string(), std::string("no model"), model.substr(0, model.size() / 2)}) {
    const auto path = write("a.model", bytes);
    const Error error = error_of([&] { Tokenizer::load(path); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    EXPECT_THAT(error.message(), HasSubstr(path.string()));
  }
  EXPECT_EQ(error_of([&] { Tokenizer::load(folder / "missing"); }).kind(), ErrorKind::kIo);
}

}  // namespace
}  // namespace trireme::text
