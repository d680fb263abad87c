// The public data beside this repository, and SentencePiece's own answers for a foreign model.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "packs/text/data/documents.h"
#include "packs/text/data/prepare.h"
#include "tests/packs/text/data/text_folder.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"

namespace trireme::text {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> columns(const std::string& line) {
  std::vector<std::string> result;
  std::istringstream stream(line);
  for (std::string column; std::getline(stream, column, '\t');) result.push_back(column);
  return result;
}

/// Length-prefixed field of a protocol buffer.
std::string protobuf_field(int number, const std::string& content) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  for (std::size_t rest = content.size();; rest >>= 7U) {
    bytes += static_cast<char>(rest >= 128 ? (rest & 127U) | 128U : rest);
    if (rest < 128) return bytes + content;
  }
}

/// SentencePiece of a ModelProto: piece 1, score 2, type 3.
std::string piece_bytes(const std::vector<std::string>& row) {
  std::string piece;
  for (std::size_t i = 0; i < row[1].size(); ++i) {
    if (row[1].compare(i, 2, "\\x") == 0) {
      piece += static_cast<char>(std::stoi(row[1].substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else {
      piece += row[1][i];
    }
  }
  const float score = std::stof(row[2]);
  const char type = row[3] == "unknown" ? 2 : row[3] == "control" ? 3 : 1;
  std::string bytes = protobuf_field(1, piece) + "\x15";
  bytes.append(reinterpret_cast<const char*>(&score), sizeof score);
  return bytes + "\x18" + type;
}

/// A model of the pieces in vocab.tsv, with SentencePiece's default settings: dummy prefix, extra
/// blanks removed.
std::string foreign_model(const fs::path& vocabulary) {
  std::ifstream file(vocabulary);
  std::string line, model;
  std::getline(file, line);
  while (std::getline(file, line)) model += protobuf_field(1, piece_bytes(columns(line)));
  return model;
}

TEST(PublicData, AForeignModelSegmentsAsItShould) {
  const fs::path data = public_data("vocab-sentencepiece-unigram1000");
  if (data.empty()) GTEST_SKIP() << "no ../shared/data/vocab-sentencepiece-unigram1000";
  const Tokenizer tokenizer = Tokenizer::from_bytes(foreign_model(data / "vocab.tsv"), "vocab.tsv");
  EXPECT_EQ(tokenizer.num_pieces(), 1000);
  EXPECT_EQ(tokenizer.end(), 2);
  std::ifstream file(data / "unigram_expected.tsv");
  std::string line;
  std::getline(file, line);
  int rows = 0;
  while (std::getline(file, line)) {
    const std::vector<std::string> row = columns(line);
    std::string ids;
    for (const Token token : tokenizer.encode(row[0])) {
      ids += (ids.empty() ? "" : " ") + std::to_string(token);
    }
    EXPECT_EQ(ids, row[1]) << row[0];
    ++rows;
  }
  EXPECT_EQ(rows, 204);
}

class PublicText : public TextFolder {};

TEST_F(PublicText, WikipediaIsPreparedAndComesBack) {
  const fs::path data = public_data("text-wikipedia-sample");
  if (data.empty()) GTEST_SKIP() << "no ../shared/data/text-wikipedia-sample";
  const Prepared prepared = prepare({.inputs = {data},
                                     .suffixes = {".jsonl"},
                                     .tokenizer = {.num_pieces = 2000, .sample_bytes = 300'000},
                                     .held_out_fraction = 0.1,
                                     .max_document_bytes = 1 << 20,
                                     .cache = folder},
                                    Logger(LogLevel::kWarning));
  EXPECT_EQ(prepared.report.documents, 121);
  EXPECT_EQ(prepared.report.repaired, 0);
  EXPECT_EQ(prepared.tokenizer.num_pieces(), 2000);
  EXPECT_EQ(prepared.training.num_documents() + prepared.held_out.num_documents(), 121);
  std::ifstream file(data / "train-00000.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto text = parse_json(line, "line")["text"].get<std::string>();
    EXPECT_EQ(prepared.tokenizer.decode(prepared.tokenizer.encode(text)), text);
  }
}

TEST_F(PublicText, ShakespeareIsCutIntoDocuments) {
  const fs::path data = public_data("text-tinyshakespeare");
  if (data.empty()) GTEST_SKIP() << "no ../shared/data/text-tinyshakespeare";
  const Prepared prepared = prepare({.inputs = {data / "train.txt"},
                                     .tokenizer = {.num_pieces = 1000, .sample_bytes = 300'000},
                                     .max_document_bytes = 8192,
                                     .cache = folder},
                                    Logger(LogLevel::kWarning));
  EXPECT_EQ(prepared.report.cut, 1);
  EXPECT_GT(prepared.report.documents, 1'003'857 / 8192);
  EXPECT_GT(prepared.held_out.num_tokens(), 0);
  const std::string text = read_file(data / "train.txt");
  EXPECT_EQ(prepared.tokenizer.decode(prepared.tokenizer.encode(text)), text);
}

}  // namespace
}  // namespace trireme::text
