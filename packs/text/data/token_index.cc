#include "packs/text/data/token_index.h"

#include <limits>

#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

// Sums of all shards must not exceed 64 bits: what one says is bounded.
constexpr std::int64_t kMaxShardBytes = std::int64_t{1} << 32;
constexpr std::size_t kMaxShards = std::size_t{1} << 24;

Json split_to_json(const TokenSplit& split) {
  Json shards = Json::array();
  for (const ShardFile& shard : split.shards) {
    shards.push_back({{"file", shard.file},
                      {"bytes", shard.bytes},
                      {"tokens", shard.tokens},
                      {"sha256", shard.sha256}});
  }
  return {{"documents", split.documents}, {"shards", std::move(shards)}};
}

std::string hash_from_json(const JsonField& field) {
  if (!is_sha256(field.text())) field.fail_expected("64 hexadecimal digits");
  return field.text();
}

ShardFile shard_from_json(const JsonField& field) {
  JsonObject object(field);
  ShardFile shard;
  const JsonField file = object.required("file");
  shard.file = file.text();
  if (shard.file.empty() || shard.file.find_first_of(std::string("/\0", 2)) != std::string::npos ||
      shard.file.starts_with('.')) {
    file.fail_expected("the name of a file beside the index");
  }
  shard.bytes = object.required("bytes").integer(0, kMaxShardBytes);
  shard.tokens = object.required("tokens").integer(1, kMaxShardBytes);
  shard.sha256 = hash_from_json(object.required("sha256"));
  object.finish();
  return shard;
}

TokenSplit split_from_json(const JsonField& field) {
  JsonObject object(field);
  TokenSplit split;
  split.documents = object.required("documents").integer(0);
  const JsonField shards = object.required("shards");
  split.shards = shards.list(shard_from_json);
  if (split.shards.size() > kMaxShards) shards.fail_expected("at most 2^24 shards");
  object.finish();
  return split;
}

}  // namespace

std::int64_t TokenSplit::num_tokens() const {
  std::int64_t tokens = 0;
  for (const ShardFile& shard : shards) tokens += shard.tokens;
  return tokens;
}

Json to_json(const TokenIndex& index) {
  return {{"tokenizer_sha256", index.tokenizer_sha256},
          {"vocabulary_size", index.vocabulary_size},
          {"report", to_json(index.report)},
          {"training", split_to_json(index.training)},
          {"held_out", split_to_json(index.held_out)}};
}

TokenIndex token_index_from_json(const Json& body) {
  JsonObject object(JsonField(body, "tokens"));
  TokenIndex index;
  index.tokenizer_sha256 = hash_from_json(object.required("tokenizer_sha256"));
  index.vocabulary_size =
      object.required("vocabulary_size").integer(1, std::numeric_limits<std::int32_t>::max());
  index.report = report_from_json(object.required("report"));
  index.training = split_from_json(object.required("training"));
  index.held_out = split_from_json(object.required("held_out"));
  object.finish();
  return index;
}

std::string save(const TokenIndex& index, const std::filesystem::path& path) {
  return write_document(path, kTokensDocument, to_json(index));
}

TokenIndex load_token_index(const std::filesystem::path& path) {
  const Json body = read_document(path, kTokensDocument);
  try {
    return token_index_from_json(body);
  } catch (const Error& error) {
    throw Error(error.kind(), "'" + path.string() + "': " + error.message());
  }
}

}  // namespace trireme::text
