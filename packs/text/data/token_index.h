#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "packs/text/data/report.h"
#include "trireme/base/document.h"

namespace trireme::text {

inline constexpr DocumentKind kTokensDocument{"trireme.tokens", 1};

/// One safetensors file with the i32 tensor `tokens` [tokens].
struct ShardFile {
  std::string file;  ///< A name in the folder of the index.
  std::int64_t bytes = 0;
  std::int64_t tokens = 0;
  std::string sha256;  ///< Of the file.
  bool operator==(const ShardFile&) const = default;
};

/// Documents whose tokens stand one after the other, each with an end token behind it.
struct TokenSplit {
  std::int64_t documents = 0;
  std::vector<ShardFile> shards;

  std::int64_t num_tokens() const;
  bool operator==(const TokenSplit&) const = default;
};

/// What a folder of tokens holds.
struct TokenIndex {
  std::string tokenizer_sha256;
  std::int64_t vocabulary_size = 0;  ///< All tokens are below.
  TextReport report;
  TokenSplit training;
  TokenSplit held_out;
  bool operator==(const TokenIndex&) const = default;
};

Json to_json(const TokenIndex& index);

/// Inverse of `to_json`. kCorruptData, naming the field; names of files are checked to be names.
TokenIndex token_index_from_json(const Json& body);

/// Writes the document; returns its sha256. Errors of `write_file_atomically`.
std::string save(const TokenIndex& index, const std::filesystem::path& path);

/// Inverse of `save`. Errors of `read_document` and `token_index_from_json`, naming the file.
TokenIndex load_token_index(const std::filesystem::path& path);

}  // namespace trireme::text
