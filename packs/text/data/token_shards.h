#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "packs/text/data/span_corruption.h"
#include "packs/text/data/token_index.h"

namespace trireme::text {

/// The tokens of one split, from files mapped into memory. Copies share the mappings.
/// Threads  immutable.
class TokenShards {
 public:
  /// Sizes and headers of the files are checked, their content is not: `verify` does that.
  ///
  /// folder   where the index and the shards lie.
  /// Errors   kCorruptData, naming the file, where one is not as long as the index says or holds
  ///          something else; kIo where it is missing or unreadable.
  TokenShards(const std::filesystem::path& folder, const TokenSplit& split,
              std::int64_t vocabulary_size);

  std::int64_t num_tokens() const;
  std::int64_t num_documents() const;

  /// Copies tokens [begin, begin + tokens.size()) out.
  ///
  /// Errors   kInvalidArgument for a range beyond the end; kCorruptData for a token that is not in
  ///          the vocabulary.
  void read(std::int64_t begin, std::span<data::Token> tokens) const;

  /// Tells these tokens from others: a hash of the shards' hashes.
  const std::string& sha256() const;

  /// Reads all files and compares their hashes. kCorruptData, naming the file.
  void verify() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;  // of all copies
};

}  // namespace trireme::text
