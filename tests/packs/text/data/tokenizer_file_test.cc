#include "packs/text/data/tokenizer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <sstream>
#include <string>
#include <vector>

#include "packs/text/data/word_pieces.h"
#include "tests/base/error_of.h"
#include "tests/base/test_folder.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"

namespace trireme::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Of an uncased BERT with ten pieces, as transformers writes it.
Json small_file() {
  Json file = Json::parse(R"({"version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 0, "content": "[PAD]", "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                   "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null,
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100, "vocab": {}}})");
  int token = 0;
  for (const char* piece :
       {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "c", "\u03c3", "##\u03c3"})
    file["model"]["vocab"][piece] = token++;
  return file;
}

std::vector<Token> tokens_of(const Json& file, std::string_view text) {
  return WordPieces::from_vocabulary(file.dump(), "tokenizer.json").encode(text);
}

TEST(TokenizerFile, GivesTheTokensOfItsVocabulary) {
  const Json file = small_file();
  EXPECT_EQ(tokens_of(file, "AB c, \u00e1b"), (std::vector<Token>{5, 6, 7, 1, 5, 6}));
  EXPECT_EQ(tokens_of(file, std::string(100, 'a')), std::vector<Token>{1});
  const WordPieces pieces = WordPieces::from_vocabulary(file.dump(2), "tokenizer.json");
  EXPECT_EQ(pieces.special().mask, 4);
  EXPECT_EQ(pieces.vocabulary_size(), 10);
  EXPECT_EQ(WordPieces::from_vocabulary(pieces.bytes(), "again").encode("ab"),
            (std::vector<Token>{5, 6}));
}

TEST(TokenizerFile, WordsAreThoseOfItsLibrary) {
  EXPECT_EQ(tokens_of(small_file(), "\u03a3\u03a3"), (std::vector<Token>{8, 9}))
      << "as within a word";
  EXPECT_EQ(tokens_of(small_file(), "a\ue000b"), (std::vector<Token>{5, 6}))
      << "private characters";
  Json file = small_file();
  file["model"]["max_input_chars_per_word"] = 1;
  EXPECT_EQ(tokens_of(file, "ab c"), (std::vector<Token>{1, 7}));
}

TEST(TokenizerFile, OthersAreRefused) {
  const auto refusal = [](const std::function<void(Json&)>& change) {
    Json file = small_file();
    change(file);
    return test::error_of([&] { tokens_of(file, "a"); });
  };
  EXPECT_THAT(refusal([](Json& file) { file["model"]["type"] = "BPE"; }).message(),
              AllOf(HasSubstr(R"(the model is "BPE"; expected "WordPiece")"),
                    HasSubstr("spiece.model"), HasSubstr("trireme.Tokenized")));
  EXPECT_THAT(refusal([](Json& file) { file["normalizer"]["lowercase"] = false; }).message(),
              HasSubstr("the normalizer's lowercase is false; expected true"));
  EXPECT_THAT(refusal([](Json& file) { file["normalizer"]["strip_accents"] = false; }).message(),
              HasSubstr("strip_accents is false"));
  EXPECT_THAT(refusal([](Json& file) { file["pre_tokenizer"] = nullptr; }).message(),
              HasSubstr("the pre_tokenizer is null"));
  EXPECT_THAT(refusal([](Json& file) { file["added_tokens"][0]["id"] = 10; }).message(),
              HasSubstr("an added token is \"[PAD]\""));
  const Error gap = refusal([](Json& file) { file["model"]["vocab"]["c"] = 6; });
  EXPECT_EQ(gap.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(gap.message(), HasSubstr("has the token 6 of 10, each once from 0 on"));
  EXPECT_EQ(test::error_of([] { WordPieces::from_vocabulary("{\"a\": 1", "x"); }).kind(),
            ErrorKind::kInvalidArgument)
      << "a vocab.txt of one piece";
  EXPECT_EQ(test::error_of([] { WordPieces::from_vocabulary("{\"a\": }", "x"); }).kind(),
            ErrorKind::kCorruptData);
}

/// Whether the program ended with 0.
bool succeeds(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, words[0].c_str(), nullptr, nullptr, arguments.data(), environ) != 0) {
    return false;
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class TokenizerFileBeside : public test::TestFolder {};

/// Wikipedia, Shakespeare and odd characters: each text's tokens are the library's.
TEST_F(TokenizerFileBeside, TheLibrary) {
  const std::filesystem::path data = std::filesystem::absolute("../shared/data");
  if (!std::filesystem::exists(data / "vocab-bert-uncased/vocab.txt"))
    GTEST_SKIP() << "no ../shared/data/vocab-bert-uncased";
  const std::string python = ".venv/bin/python";
  if (!succeeds({python, "-c",
                 "import importlib.util as i, sys; sys.exit(not i.find_spec('tokenizers'))"}))
    GTEST_SKIP() << "no tokenizers in .venv; ./dev test installs it";
  write("tokens.py",
        "import json, pathlib, sys\n"
        "from tokenizers import BertWordPieceTokenizer\n"
        "data, folder = map(pathlib.Path, sys.argv[1:])\n"
        "BertWordPieceTokenizer(str(data / 'vocab-bert-uncased/vocab.txt')).save(str(folder / "
        "'tokenizer.json'))\n"
        "from tokenizers import Tokenizer\n"
        "tokenizer = Tokenizer.from_file(str(folder / 'tokenizer.json'))\n"
        "lines = (data / "
        "'text-wikipedia-sample/validation-00000.jsonl').read_text().splitlines()[:200]\n"
        "texts = [json.loads(line)['text'] for line in lines]\n"
        "texts += sorted((data / "
        "'text-tinyshakespeare').glob('*.txt'))[0].read_text().split('\\n\\n')[:500]\n"
        "texts += ['\\u03a3\\u03a3\\u03a3 \\u0130stanbul \\ue000x \\u4e2d\\u6587', 'x' * 150, "
        "'\\x00\\ufffd a\\u200db']\n"
        "with open(folder / 'tokens', 'w') as file:\n"
        "    for text in texts:\n"
        "        ids = tokenizer.encode(text, add_special_tokens=False).ids\n"
        "        file.write(json.dumps({'text': text, 'ids': ids}) + '\\n')\n");
  ASSERT_TRUE(succeeds({python, path("tokens.py"), data.string(), folder.string()}));
  const WordPieces pieces = WordPieces::load(folder / "tokenizer.json");
  std::istringstream lines(read_file(path("tokens")));
  std::int64_t num_texts = 0, num_tokens = 0;
  for (std::string line; std::getline(lines, line); ++num_texts) {
    const Json expected = Json::parse(line);
    const auto tokens = pieces.encode(expected["text"].get<std::string>());
    ASSERT_EQ(tokens, expected["ids"].get<std::vector<Token>>()) << line.substr(0, 200);
    num_tokens += std::ssize(tokens);
  }
  EXPECT_GT(num_texts, 300);
  EXPECT_GT(num_tokens, 50'000);
}

}  // namespace
}  // namespace trireme::text
