#include "packs/text/data/token_shards.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "trireme/base/mapped_file.h"
#include "trireme/base/safetensors.h"
#include "trireme/base/sha256.h"
#include "trireme/data/read_parts.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

using data::Token;
namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& problem) {
  throw Error(ErrorKind::kCorruptData, "token shard '" + path.string() + "': " + problem +
                                           "; remove the folder to have it made anew");
}

std::span<const Token> tokens_of(const MappedFile& file, const ShardFile& shard,
                                 const fs::path& path) {
  const auto bytes = static_cast<std::int64_t>(file.bytes().size());
  if (bytes != shard.bytes) {
    fail(path, "expected " + std::to_string(shard.bytes) + " bytes, got " + std::to_string(bytes));
  }
  const safetensors::Content content = safetensors::parse(file.bytes(), path.string());
  if (content.tensors.size() != 1 || content.tensors[0].name != "tokens" ||
      content.tensors[0].dtype != Dtype::kI32 ||
      content.tensors[0].shape != std::vector<std::int64_t>{shard.tokens}) {
    fail(path, "expected one i32 tensor 'tokens' of " + std::to_string(shard.tokens));
  }
  const std::span<const std::byte> data = content.tensors[0].bytes;
  if (reinterpret_cast<std::uintptr_t>(data.data()) % alignof(Token) != 0) {
    fail(path, "its tokens are not aligned");
  }
  return {reinterpret_cast<const Token*>(data.data()), static_cast<std::size_t>(shard.tokens)};
}

}  // namespace

struct TokenShards::State {
  struct Shard {
    fs::path path;
    std::string sha256;
    MappedFile file;
    std::span<const Token> tokens;
    std::int64_t end;  ///< Tokens up to and with this shard.
  };

  std::vector<Shard> shards;
  std::int64_t num_documents = 0;
  std::int64_t vocabulary_size = 0;
  std::string sha256;

  std::int64_t num_tokens() const { return shards.empty() ? 0 : shards.back().end; }
};

TokenShards::TokenShards(const fs::path& folder, const TokenSplit& split,
                         std::int64_t vocabulary_size) {
  auto state = std::make_shared<State>();
  state->num_documents = split.documents;
  state->vocabulary_size = vocabulary_size;
  Sha256 hash;
  for (const ShardFile& shard : split.shards) {
    const fs::path path = folder / shard.file;
    MappedFile file(path);
    const std::span<const Token> tokens = tokens_of(file, shard, path);
    const std::int64_t end = state->num_tokens() + shard.tokens;
    state->shards.push_back({path, shard.sha256, std::move(file), tokens, end});
    hash.add(std::as_bytes(std::span(shard.sha256)));
  }
  state->sha256 = hash.finish();
  state_ = std::move(state);
}

std::int64_t TokenShards::num_tokens() const { return state_->num_tokens(); }
std::int64_t TokenShards::num_documents() const { return state_->num_documents; }
const std::string& TokenShards::sha256() const { return state_->sha256; }

void TokenShards::read(std::int64_t begin, std::span<Token> tokens) const {
  data::ReadTimer timer("read");
  timer.add_bytes(static_cast<std::int64_t>(tokens.size_bytes()));
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (begin < 0 || begin > num_tokens() || count > num_tokens() - begin) {
    throw Error(ErrorKind::kInvalidArgument, "cannot read " + std::to_string(count) +
                                                 " tokens from token " + std::to_string(begin) +
                                                 " on: there are " + std::to_string(num_tokens()));
  }
  auto shard = std::upper_bound(
      state_->shards.begin(), state_->shards.end(), begin,
      [](std::int64_t position, const State::Shard& one) { return position < one.end; });
  while (!tokens.empty()) {
    const auto available = static_cast<std::size_t>(shard->end - begin);
    const auto part = shard->tokens.last(available).first(std::min(available, tokens.size()));
    std::memcpy(tokens.data(), part.data(), part.size_bytes());
    // A changed shard must not become an index beyond a model's embedding.
    const auto limit = static_cast<std::uint32_t>(state_->vocabulary_size);
    std::uint32_t largest = 0;
    for (const Token token : part) largest = std::max(largest, static_cast<std::uint32_t>(token));
    if (largest >= limit) {
      fail(shard->path, "token " + std::to_string(static_cast<Token>(largest)) +
                            " is not in the vocabulary of " + std::to_string(limit));
    }
    begin += static_cast<std::int64_t>(part.size());
    tokens = tokens.subspan(part.size());
    ++shard;
  }
}

void TokenShards::verify() const {
  for (const State::Shard& shard : state_->shards) {
    const std::string found = trireme::sha256(shard.file.bytes());
    if (found != shard.sha256) {
      fail(shard.path, "it was changed: expected sha256 " + shard.sha256 + ", got " + found);
    }
  }
}

}  // namespace trireme::text
