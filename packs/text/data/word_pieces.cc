#include "packs/text/data/word_pieces.h"

#include <utf8.h>

#include <algorithm>
#include <utility>

#include "packs/text/data/tokenizer_file.h"
#include "trireme/base/files.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

constexpr std::string_view kGoesOn = "##";
constexpr std::string_view kTrimmed = " \t\r\n\f\v";

[[noreturn]] void refuse_pieces(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "word pieces: " + problem);
}

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(kTrimmed);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kTrimmed) - begin + 1);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

WordPieces WordPieces::load(const std::filesystem::path& path) {
  return from_vocabulary(read_file(path), path.string());
}

WordPieces WordPieces::from_vocabulary(std::string vocabulary, std::string_view origin) {
  auto state = std::make_shared<State>();
  state->bytes = std::move(vocabulary);
  state->sha256 = trireme::sha256(state->bytes);
  if (is_tokenizer_file(state->bytes)) {
    const WordPieceFile file = parse_word_piece_file(state->bytes, origin);
    state->pieces = lines_of(file.vocabulary);
    state->most_characters = file.most_word_characters;
    state->rules = WordRules::kHuggingFace;
  } else {
    state->pieces = lines_of(state->bytes);
  }
  for (std::size_t i = 0; i < state->pieces.size(); ++i) {
    const std::string& piece = state->pieces[i];
    const auto token = static_cast<Token>(i);
    state->longest = std::max(state->longest, piece.size());
    state->beginnings.insert_or_assign(piece, token);
    if (piece.starts_with(kGoesOn)) {
      state->continuations.insert_or_assign(piece.substr(kGoesOn.size()), token);
    }
  }
  const auto token_of = [&](const std::string& piece) {
    const auto found = state->beginnings.find(piece);
    if (found != state->beginnings.end()) return found->second;
    refuse_pieces("'" + std::string(origin) + "' has " + std::to_string(state->pieces.size()) +
                  " pieces and no " + piece + "; expected a vocab.txt of BERT, a piece a line");
  };
  state->special = {.padding = token_of("[PAD]"),
                    .unknown = token_of("[UNK]"),
                    .first = token_of("[CLS]"),
                    .separator = token_of("[SEP]"),
                    .mask = token_of("[MASK]")};
  return WordPieces(std::move(state));
}

void WordPieces::append(std::string_view word, std::vector<Token>& tokens) const {
  const std::size_t before = tokens.size();
  const Pieces* pieces = &state_->beginnings;
  const std::int64_t most = state_->most_characters;
  const bool is_long =
      std::ssize(word) > most && utf8::unchecked::distance(word.begin(), word.end()) > most;
  while (!word.empty() && !is_long) {
    std::size_t length = std::min(word.size(), state_->longest);
    auto found = pieces->end();
    for (; length > 0; --length) {
      // Pieces are whole characters: others cannot match.
      found = pieces->find(word.substr(0, length));
      if (found != pieces->end()) break;
    }
    if (length == 0) break;
    tokens.push_back(found->second);
    word.remove_prefix(length);
    pieces = &state_->continuations;
  }
  if (word.empty()) return;
  tokens.resize(before);
  tokens.push_back(state_->special.unknown);
}

std::vector<Token> WordPieces::encode(std::string_view text) const {
  std::vector<Token> tokens;
  for (const std::string& word : basic_words(text, state_->rules)) append(word, tokens);
  return tokens;
}

std::string WordPieces::decode(std::span<const Token> tokens) const {
  std::string text;
  for (const Token token : tokens) {
    if (token < 0 || token >= vocabulary_size()) {
      refuse_pieces("there is no token " + std::to_string(token) + " in a vocabulary of " +
                    std::to_string(vocabulary_size()));
    }
    std::string_view piece = state_->pieces[static_cast<std::size_t>(token)];
    if (piece.size() > kGoesOn.size() && piece.starts_with(kGoesOn) && !text.empty()) {
      piece.remove_prefix(kGoesOn.size());
    } else if (!text.empty()) {
      text += ' ';
    }
    text += piece;
  }
  return text;
}

}  // namespace trireme::text
