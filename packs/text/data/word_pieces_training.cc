#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <utf8.h>

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "packs/text/data/basic_words.h"
#include "packs/text/data/word_pieces.h"
#include "trireme/error.h"

// SentencePiece's byte-pair encoding marks the beginning of a word, WordPiece what goes on within one:
//
//     U+2581 train, ing, U+2581 t, e, ..   ->   train, ##ing, t, ##t, e, ##e, ..
//
// Characters come in both forms, so that a word of known characters is never unknown.

namespace trireme::text {
namespace {

constexpr std::string_view kBeginning = "\xE2\x96\x81";
constexpr std::size_t kMaxLineBytes = 4000;  // SentencePiece ignores longer ones

[[noreturn]] void refuse_training(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "cannot train word pieces: " + problem);
}

/// The basic words of all texts, a blank between them, in lines.
std::vector<std::string> lines_of_words(std::span<const std::string> texts) {
  std::vector<std::string> lines(1);
  for (const std::string& text : texts) {
    for (const std::string& word : basic_words(text)) {
      if (word.size() > kMaxLineBytes / 4) continue;  // no word
      if (lines.back().size() + word.size() > kMaxLineBytes - 1) lines.emplace_back();
      lines.back() += (lines.back().empty() ? "" : " ") + word;
    }
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

std::unordered_map<std::string, std::string> pieces_options(const TokenizerOptions& options) {
  return {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(options.num_pieces)},
      {"hard_vocab_limit", "false"},
      {"character_coverage", std::to_string(options.character_coverage)},
      {"unk_id", "0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      {"normalization_rule_name", "identity"},
      {"num_threads", "16"},
      {"minloglevel", "3"},
  };
}

class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}

  bool done() const override { return next_ == lines_.size(); }
  void Next() override { ++next_; }  // NOLINT(readability-identifier-naming): the vendor's name
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  std::size_t next_ = 0;
};

/// What byte-pair encoding finds in the lines: characters, and longer pieces, most frequent first.
struct Found {
  std::set<std::string> characters;
  std::vector<std::string> pieces;
};

Found find_pieces(const std::vector<std::string>& lines, const TokenizerOptions& options) {
  std::string bytes;
  sentencepiece::SentencePieceProcessor model;
  Lines sentences(lines);
  auto status =
      sentencepiece::SentencePieceTrainer::Train(pieces_options(options), &sentences, &bytes);
  if (status.ok()) status = model.LoadFromSerializedProto(bytes);
  if (!status.ok()) {
    refuse_training(std::to_string(options.num_pieces) +
                    " pieces, of which each character takes one: " + status.error_message());
  }
  Found found;
  for (int id = 0; id < model.GetPieceSize(); ++id) {
    if (model.IsUnknown(id)) continue;
    std::string piece = model.IdToPiece(id);
    const bool is_beginning = piece.starts_with(kBeginning);
    if (is_beginning) piece.erase(0, kBeginning.size());
    if (piece.empty() || piece.find(kBeginning) != std::string::npos) continue;
    if (utf8::distance(piece.begin(), piece.end()) == 1) {
      found.characters.insert(piece);
    } else {
      found.pieces.push_back((is_beginning ? "" : "##") + piece);
    }
  }
  return found;
}

}  // namespace

WordPieces WordPieces::train(std::span<const std::string> texts, const TokenizerOptions& options) {
  const std::vector<std::string> lines = lines_of_words(texts);
  if (lines.empty()) refuse_training("there is no text");
  const Found found = find_pieces(lines, options);
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  std::int64_t count = 5;
  const auto add = [&](const std::string& piece) {
    if (count >= options.num_pieces) return;
    vocabulary += piece + "\n";
    ++count;
  };
  for (const std::string& character : found.characters) {
    add(character);
    add("##" + character);
  }
  for (const std::string& piece : found.pieces) add(piece);
  return from_vocabulary(std::move(vocabulary), "a trained vocabulary");
}

}  // namespace trireme::text
