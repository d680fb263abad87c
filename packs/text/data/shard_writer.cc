#include "packs/text/data/shard_writer.h"

#include <algorithm>
#include <utility>

#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"
#include "trireme/base/sha256.h"

namespace trireme::text {

ShardWriter::ShardWriter(std::filesystem::path folder, std::string name, std::size_t shard_tokens)
    : folder_(std::move(folder)), name_(std::move(name)), shard_tokens_(shard_tokens) {
  tokens_.reserve(shard_tokens_);
}

void ShardWriter::append(std::span<const data::Token> tokens, std::int64_t documents) {
  split_.documents += documents;
  while (!tokens.empty()) {
    const auto part = tokens.first(std::min(tokens.size(), shard_tokens_ - tokens_.size()));
    tokens_.insert(tokens_.end(), part.begin(), part.end());
    tokens = tokens.subspan(part.size());
    if (tokens_.size() == shard_tokens_) write_shard();
  }
}

TokenSplit ShardWriter::finish() {
  if (!tokens_.empty()) write_shard();
  return std::move(split_);
}

void ShardWriter::write_shard() {
  const auto count = static_cast<std::int64_t>(tokens_.size());
  const auto bytes = safetensors::to_bytes(
      {{"tokens", Dtype::kI32, {count}, std::as_bytes(std::span<const data::Token>(tokens_))}});
  std::string number = std::to_string(split_.shards.size());
  number.insert(0, number.size() < 5 ? 5 - number.size() : 0, '0');
  const std::string file = name_ + "-" + number + ".safetensors";
  write_file_atomically(folder_ / file, bytes);
  split_.shards.push_back(
      {file, static_cast<std::int64_t>(bytes.size()), count, sha256(std::span(bytes))});
  tokens_.clear();
}

}  // namespace trireme::text
