#include "packs/text/data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <utility>

#include "trireme/base/files.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

// SentencePiece writes a blank as U+2581, so that a real U+2581 would come back as a blank. Here it
// goes around the model, as its three bytes:
//
//     text      a U+2581 b              tokens  a <0xE2> <0x96> <0x81> b
//
// So does the blank itself in a model that learnt none: it would be spelled as U+2581.

namespace trireme::text {
namespace {

constexpr const char* kBlankPiece = "\xE2\x96\x81";

[[noreturn]] void refuse(ErrorKind kind, const std::string& problem) {
  throw Error(kind, "tokenizer: " + problem);
}

/// Ids of the bytes of `text`; nothing where the model lacks one.
std::vector<Token> byte_tokens(const sentencepiece::SentencePieceProcessor& model,
                               std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::vector<Token> tokens;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const std::string piece = {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
    const Token token = model.PieceToId(piece);
    if (!model.IsByte(token)) return {};
    tokens.push_back(token);
  }
  return tokens;
}

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  return from_bytes(read_file(path), path.string());
}

Tokenizer Tokenizer::from_bytes(std::string model, std::string_view origin) {
  const std::string name(origin);
  auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
  const auto status = processor->LoadFromSerializedProto(model);
  if (!status.ok()) {
    refuse(ErrorKind::kCorruptData,
           "'" + name + "' is not a SentencePiece model: " + std::string(status.error_message()));
  }
  Tokenizer tokenizer;
  tokenizer.num_pieces_ = processor->GetPieceSize();
  tokenizer.end_ = processor->eos_id();
  if (tokenizer.end_ < 0) {
    refuse(ErrorKind::kInvalidArgument,
           "'" + name + "' has no token for the end of a text; train it with an eos_id");
  }
  tokenizer.padding_ = processor->pad_id() >= 0 ? processor->pad_id() : processor->unk_id();
  std::vector<std::string> characters = {kBlankPiece};
  if (processor->IsUnknown(processor->PieceToId(kBlankPiece))) characters.emplace_back(" ");
  for (const std::string& character : characters) {
    std::vector<Token> tokens = byte_tokens(*processor, character);
    if (!tokens.empty()) tokenizer.spelled_.push_back({character, std::move(tokens)});
  }
  tokenizer.model_ = std::move(processor);
  tokenizer.sha256_ = trireme::sha256(model);
  tokenizer.bytes_ = std::make_shared<const std::string>(std::move(model));
  return tokenizer;
}

data::SpecialTokens Tokenizer::special() const {
  return {.end = end_, .first_sentinel = vocabulary_size() - 1, .num_sentinels = kNumSentinels};
}

void Tokenizer::append(std::string_view text, std::vector<Token>& tokens) const {
  if (text.empty()) return;
  std::vector<int> ids;
  const auto status = model_->Encode(text, &ids);
  if (!status.ok()) {
    refuse(ErrorKind::kInvalidArgument, "cannot encode a text of " + std::to_string(text.size()) +
                                            " bytes: " + status.error_message());
  }
  if (tokens.empty()) {
    tokens = std::move(ids);
  } else {
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
}

std::vector<Token> Tokenizer::encode(std::string_view text) const {
  std::vector<Token> tokens;
  for (;;) {
    const Spelled* first = nullptr;
    std::size_t begin = text.size();
    for (const Spelled& spelled : spelled_) {
      const std::size_t found = text.substr(0, begin).find(spelled.character);
      if (found == std::string_view::npos) continue;
      begin = found;
      first = &spelled;
    }
    append(text.substr(0, begin), tokens);
    if (first == nullptr) return tokens;
    tokens.insert(tokens.end(), first->tokens.begin(), first->tokens.end());
    text.remove_prefix(begin + first->character.size());
  }
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  std::string text;
  std::vector<int> ids;
  const auto flush = [&] {
    std::string part;
    const auto status = model_->Decode(ids, &part);
    if (!status.ok()) refuse(ErrorKind::kInvalidArgument, status.error_message());
    text += part;
    ids.clear();
  };
  for (const Token token : tokens) {
    if (token < 0 || token >= vocabulary_size()) {
      refuse(ErrorKind::kInvalidArgument, "there is no token " + std::to_string(token) +
                                              " in a vocabulary of " +
                                              std::to_string(vocabulary_size()));
    }
    if (token < num_pieces_) {
      ids.push_back(token);
      continue;
    }
    flush();
    text += "<extra_id_" + std::to_string(vocabulary_size() - 1 - token) + ">";
  }
  flush();
  return text;
}

}  // namespace trireme::text
