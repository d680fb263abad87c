#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "packs/text/data/span_corruption.h"
#include "packs/text/data/token_index.h"

namespace trireme::text {

/// Tokens of a full shard: its file has 64 MiB with the header.
inline constexpr std::size_t kShardTokens = (std::size_t{64} << 20U) / sizeof(data::Token) - 64;

/// Writes tokens into shards `<name>-00000.safetensors`, `<name>-00001.safetensors`, ...
/// Caller-synchronised. Memory: two shards.
class ShardWriter {
 public:
  /// folder   exists and is the writer's alone.
  ShardWriter(std::filesystem::path folder, std::string name,
              std::size_t shard_tokens = kShardTokens);

  /// Adds the tokens of so many documents. Errors of `write_file_atomically`.
  void append(std::span<const data::Token> tokens, std::int64_t documents);

  /// Writes what is left; returns what the files hold. Call it last.
  TokenSplit finish();

 private:
  void write_shard();

  std::filesystem::path folder_;
  std::string name_;
  std::size_t shard_tokens_;
  std::vector<data::Token> tokens_;
  TokenSplit split_;
};

}  // namespace trireme::text
