#include "packs/text/data/tokenizer_file.h"

#include <vector>

#include "trireme/base/json.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

constexpr std::int64_t kUsualWordCharacters = 100;

/// A file with what is wrong in it.
class TokenizerJson {
 public:
  TokenizerJson(std::string_view bytes, std::string_view origin)
      : origin_(origin), json_(parse_json(bytes, origin)) {}

  /// The object under a name; an empty one where it is null or missing.
  Json part(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return Json::object();
    if (!found->is_object()) damaged(std::string("\"") + name + "\" is no object");
    return *found;
  }

  Json list(const char* name) const {
    const auto found = json_.find(name);
    return found != json_.end() && found->is_array() ? *found : Json::array();
  }

  /// Of a part: `found` instead of `expected`.
  void expect(const std::string& what, const Json& found, const Json& expected) const {
    if (found == expected) return;
    throw Error(ErrorKind::kInvalidArgument,
                "'" + origin_ + "': " + what + " is " + found.dump() + "; expected " +
                    expected.dump() +
                    ", as of an uncased BERT. Other tokenizers: SentencePiece's own file "
                    "(spiece.model), or trireme.Tokenized in Python");
  }

  [[noreturn]] void damaged(const std::string& problem) const {
    throw Error(ErrorKind::kCorruptData, "'" + origin_ + "': " + problem +
                                             "; expected a tokenizer.json, as transformers' "
                                             "save_pretrained writes it");
  }

 private:
  std::string origin_;
  Json json_;
};

Json value_of(const Json& part, const char* name) {
  const auto found = part.find(name);
  return found == part.end() ? Json() : *found;
}

void check_words(const TokenizerJson& file) {
  const Json normalizer = file.part("normalizer");
  file.expect("the normalizer", value_of(normalizer, "type"), "BertNormalizer");
  file.expect("the normalizer's lowercase", value_of(normalizer, "lowercase"), true);
  file.expect("the normalizer's clean_text", value_of(normalizer, "clean_text"), true);
  file.expect("the normalizer's handle_chinese_chars", value_of(normalizer, "handle_chinese_chars"),
              true);
  const Json accents = value_of(normalizer, "strip_accents");  // null: as lowercase
  if (!accents.is_null()) file.expect("the normalizer's strip_accents", accents, true);
  file.expect("the pre_tokenizer", value_of(file.part("pre_tokenizer"), "type"),
              "BertPreTokenizer");
}

/// Pieces by token, from 0 on without gaps.
std::vector<std::string> pieces_of(const TokenizerJson& file, const Json& vocabulary) {
  if (!vocabulary.is_object()) file.damaged("the model's \"vocab\" is no object");
  std::vector<std::string> pieces(vocabulary.size());
  std::vector<bool> is_there(pieces.size());
  for (const auto& [piece, token] : vocabulary.items()) {
    const bool fits = token.is_number_unsigned() && token.get<std::uint64_t>() < pieces.size() &&
                      !is_there[token.get<std::size_t>()];
    if (!fits || piece.find('\n') != std::string::npos) {
      file.damaged("piece " + Json(piece).dump() + " has the token " + token.dump() + " of " +
                   std::to_string(pieces.size()) + ", each once from 0 on");
    }
    is_there[token.get<std::size_t>()] = true;
    pieces[token.get<std::size_t>()] = piece;
  }
  return pieces;
}

void check_added(const TokenizerJson& file, const std::vector<std::string>& pieces) {
  for (const Json& added : file.list("added_tokens")) {
    const Json id = value_of(added, "id"), content = value_of(added, "content");
    const bool is_piece = id.is_number_unsigned() && id.get<std::uint64_t>() < pieces.size() &&
                          content == pieces[id.get<std::size_t>()];
    if (!is_piece) file.expect("an added token", content, "a piece of the vocabulary");
  }
}

}  // namespace

bool is_tokenizer_file(std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n"),
                    last = bytes.find_last_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] == '{' && bytes[last] == '}';
}

WordPieceFile parse_word_piece_file(std::string_view bytes, std::string_view origin) {
  const TokenizerJson file(bytes, origin);
  const Json model = file.part("model");
  file.expect("the model", value_of(model, "type"), "WordPiece");
  file.expect("the model's continuing_subword_prefix", value_of(model, "continuing_subword_prefix"),
              "##");
  file.expect("the model's unk_token", value_of(model, "unk_token"), "[UNK]");
  check_words(file);
  const std::vector<std::string> pieces = pieces_of(file, value_of(model, "vocab"));
  check_added(file, pieces);
  WordPieceFile result;
  for (const std::string& piece : pieces) result.vocabulary += piece + "\n";
  const Json most = value_of(model, "max_input_chars_per_word");
  if (!most.is_null() && !most.is_number_unsigned()) {
    file.damaged("max_input_chars_per_word is " + most.dump());
  }
  result.most_word_characters = most.is_null() ? kUsualWordCharacters : most.get<std::int64_t>();
  return result;
}

}  // namespace trireme::text
