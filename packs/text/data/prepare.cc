#include "packs/text/data/prepare.h"

#include <optional>
#include <system_error>
#include <utility>

#include "packs/text/data/file_list.h"
#include "packs/text/data/tokenize.h"
#include "trireme/base/file_lock.h"
#include "trireme/base/files.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

// In the cache, for a key:
//
//     <key>.lock                held by the one process that prepares
//     <key>.partial/            what it has so far; of no use to others
//     <key>/tokens.json         the index ..
//     <key>/tokenizer.model
//     <key>/training-00000.safetensors, ..   .. and what it names

namespace trireme::text {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "tokens.json";
constexpr const char* kModelName = "tokenizer.model";

void check(const PrepareOptions& options) {
  if (!(options.held_out_fraction > 0 && options.held_out_fraction < 1)) {
    throw Error(ErrorKind::kInvalidArgument,
                "the held-out part of the text is between 0 and 1, got " +
                    std::to_string(options.held_out_fraction));
  }
  if (options.cache.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "name a folder to keep the prepared text in");
  }
}

/// Everything that the result depends on.
std::string key_of(const PrepareOptions& options, const FileList& list) {
  Json files = Json::array();
  for (const TextFile& file : list.files) {
    // Names need not be UTF-8.
    files.push_back({sha256(file.path.native()), file.bytes, file.modified_ns});
  }
  const TokenizerOptions& tokenizer = options.tokenizer;
  Json key = {{"format", kTokensDocument.format},
              {"version", kTokensDocument.version},
              {"held_out_fraction", options.held_out_fraction},
              {"max_document_bytes", options.max_document_bytes},
              {"report", to_json(list.report)},
              {"files", std::move(files)}};
  if (options.tokenizer_model.empty()) {
    key["tokenizer"] = {tokenizer.num_pieces, tokenizer.character_coverage, tokenizer.sample_bytes,
                        tokenizer.seed};
  } else {
    key["tokenizer"] = sha256(read_file(options.tokenizer_model));
  }
  return sha256(compact_text(key)).substr(0, 32);
}

/// kIo where the system had a problem with `path`.
void check_done(const std::error_code& problem, const std::string& action, const fs::path& path) {
  if (!problem) return;
  throw Error(ErrorKind::kIo,
              "cannot " + action + " '" + path.string() + "': " + problem.message());
}

/// What is there under its final name; nothing where it is not.
std::optional<Prepared> open_prepared(const fs::path& folder) {
  std::error_code problem;
  const bool is_there = fs::exists(folder / kIndexName, problem);
  check_done(problem, "look for", folder / kIndexName);
  if (!is_there) return std::nullopt;
  const TokenIndex index = load_token_index(folder / kIndexName);
  Tokenizer tokenizer = Tokenizer::load(folder / kModelName);
  if (tokenizer.sha256() != index.tokenizer_sha256) {
    throw Error(ErrorKind::kCorruptData,
                "'" + (folder / kModelName).string() +
                    "' is not the tokenizer of the tokens beside it; remove the folder to have it "
                    "made anew");
  }
  return Prepared{.tokenizer = std::move(tokenizer),
                  .training = TokenShards(folder, index.training, index.vocabulary_size),
                  .held_out = TokenShards(folder, index.held_out, index.vocabulary_size),
                  .report = index.report,
                  .folder = folder,
                  .was_cached = true};
}

ShardOptions shard_options(const PrepareOptions& options) {
  return {.max_document_bytes = options.max_document_bytes,
          .held_out_fraction = options.held_out_fraction,
          .num_threads = options.num_threads};
}

Tokenizer make_tokenizer(const PrepareOptions& options, const FileList& list,
                         const Logger& logger) {
  if (!options.tokenizer_model.empty()) return Tokenizer::load(options.tokenizer_model);
  const auto texts = sample_documents(list, shard_options(options), options.tokenizer);
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  logger.info("training a tokenizer of " + std::to_string(options.tokenizer.num_pieces) +
              " pieces on " + std::to_string(bytes) + " bytes of text");
  Tokenizer tokenizer = Tokenizer::train(texts, options.tokenizer);
  if (tokenizer.num_pieces() < options.tokenizer.num_pieces) {
    logger.warning("the text gives a tokenizer of " + std::to_string(tokenizer.num_pieces()) +
                   " pieces, not " + std::to_string(options.tokenizer.num_pieces));
  }
  return tokenizer;
}

/// Fills `partial`.
void fill(const fs::path& partial, const PrepareOptions& options, const FileList& list,
          const Logger& logger) {
  const Tokenizer tokenizer = make_tokenizer(options, list, logger);
  logger.info("tokenizing " + std::to_string(list.files.size()) + " files");
  const TokenIndex index = write_shards(list, tokenizer, shard_options(options), partial);
  if (list_files(options.inputs, options.suffixes).files != list.files) {
    throw Error(ErrorKind::kIo, "the text files changed while they were read; start again");
  }
  write_file_atomically(partial / kModelName, tokenizer.bytes());
  save(index, partial / kIndexName);
  logger.info("text: " + to_text(index.report) + "; " +
              std::to_string(index.training.num_tokens()) + " tokens to train on, " +
              std::to_string(index.held_out.num_tokens()) + " held out");
}

/// What must not be beside the new files.
void remove_old(const fs::path& folder) {
  std::error_code problem;
  fs::remove_all(folder, problem);
  check_done(problem, "remove", folder);
}

}  // namespace

Prepared prepare(const PrepareOptions& options, const Logger& logger) {
  check(options);
  const FileList list = list_files(options.inputs, options.suffixes);
  const std::string key = key_of(options, list);
  const fs::path folder = options.cache / key;
  if (auto prepared = open_prepared(folder)) {
    logger.debug("text is prepared in '" + folder.string() + "'");
    return std::move(*prepared);
  }
  make_folder(options.cache);
  const FileLock lock(options.cache / (key + ".lock"), options.max_wait, [&] {
    logger.debug("waiting for another process that prepares '" + folder.string() + "'");
  });
  if (auto prepared = open_prepared(folder)) return std::move(*prepared);
  const fs::path partial = options.cache / (key + ".partial");
  remove_old(partial);  // of a process that ended early
  remove_old(folder);   // without an index: nobody can have opened it
  make_folder(partial);
  fill(partial, options, list, logger);
  rename_durably(partial, folder);
  Prepared prepared = open_prepared(folder).value();
  prepared.was_cached = false;
  return prepared;
}

}  // namespace trireme::text
