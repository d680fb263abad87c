#include "packs/text/data/prepare.h"

#include <functional>
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
//     <key>/tokenizer.model     or vocab.txt
//     <key>/training-00000.safetensors, ..   .. and what it names

namespace trireme::text {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "tokens.json";

/// What makes tokens of documents.
struct Scheme {
  std::string file;  ///< The tokenizer's in the folder.
  Json form;         ///< What else than options and files the tokens depend on.
  std::function<DocumentEncoder()> load;
  std::function<DocumentEncoder(const std::vector<std::string>& texts)> train;
};

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
std::string key_of(const PrepareOptions& options, const FileList& list, const Scheme& scheme) {
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
  if (!scheme.form.is_null()) key["form"] = scheme.form;
  return sha256(compact_text(key)).substr(0, 32);
}

/// kIo where the system had a problem with `path`.
void check_done(const std::error_code& problem, const std::string& action, const fs::path& path) {
  if (!problem) return;
  throw Error(ErrorKind::kIo,
              "cannot " + action + " '" + path.string() + "': " + problem.message());
}

/// What is there under its final name; nothing where it is not.
std::optional<PreparedTokens> open_prepared(const fs::path& folder, const std::string& file) {
  std::error_code problem;
  const bool is_there = fs::exists(folder / kIndexName, problem);
  check_done(problem, "look for", folder / kIndexName);
  if (!is_there) return std::nullopt;
  const TokenIndex index = load_token_index(folder / kIndexName);
  if (sha256(read_file(folder / file)) != index.tokenizer_sha256) {
    throw Error(ErrorKind::kCorruptData,
                "'" + (folder / file).string() +
                    "' is not the tokenizer of the tokens beside it; remove the folder to have it "
                    "made anew");
  }
  return PreparedTokens{.training = TokenShards(folder, index.training, index.vocabulary_size),
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

DocumentEncoder make_encoder(const PrepareOptions& options, const FileList& list,
                             const Scheme& scheme, const Logger& logger) {
  if (!options.tokenizer_model.empty()) return scheme.load();
  const auto texts = sample_documents(list, shard_options(options), options.tokenizer);
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  logger.info("training a tokenizer of " + std::to_string(options.tokenizer.num_pieces) +
              " pieces on " + std::to_string(bytes) + " bytes of text");
  DocumentEncoder encoder = scheme.train(texts);
  if (encoder.vocabulary_size < options.tokenizer.num_pieces) {
    logger.warning("the text gives a tokenizer of " + std::to_string(encoder.vocabulary_size) +
                   " pieces, not " + std::to_string(options.tokenizer.num_pieces));
  }
  return encoder;
}

/// Fills `partial`.
void fill(const fs::path& partial, const FileList& list, const PrepareOptions& options,
          const Scheme& scheme, const Logger& logger) {
  const DocumentEncoder encoder = make_encoder(options, list, scheme, logger);
  logger.info("tokenizing " + std::to_string(list.files.size()) + " files");
  const TokenIndex index = write_shards(list, encoder, shard_options(options), partial);
  if (list_files(options.inputs, options.suffixes).files != list.files) {
    throw Error(ErrorKind::kIo, "the text files changed while they were read; start again");
  }
  write_file_atomically(partial / scheme.file, encoder.bytes);
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

PreparedTokens prepare_tokens(const PrepareOptions& options, const Scheme& scheme,
                              const Logger& logger) {
  check(options);
  const FileList list = list_files(options.inputs, options.suffixes);
  const std::string key = key_of(options, list, scheme);
  const fs::path folder = options.cache / key;
  if (auto prepared = open_prepared(folder, scheme.file)) {
    logger.debug("text is prepared in '" + folder.string() + "'");
    return std::move(*prepared);
  }
  make_folder(options.cache);
  const FileLock lock(options.cache / (key + ".lock"), options.max_wait, [&] {
    logger.debug("waiting for another process that prepares '" + folder.string() + "'");
  });
  if (auto prepared = open_prepared(folder, scheme.file)) return std::move(*prepared);
  const fs::path partial = options.cache / (key + ".partial");
  remove_old(partial);  // of a process that ended early
  remove_old(folder);   // without an index: nobody can have opened it
  make_folder(partial);
  fill(partial, list, options, scheme, logger);
  rename_durably(partial, folder);
  PreparedTokens prepared = open_prepared(folder, scheme.file).value();
  prepared.was_cached = false;
  return prepared;
}

}  // namespace

Prepared prepare(const PrepareOptions& options, const Logger& logger) {
  const Scheme scheme{.file = "tokenizer.model",
                      .form = nullptr,
                      .load = [&] { return encoder_of(Tokenizer::load(options.tokenizer_model)); },
                      .train =
                          [&](const std::vector<std::string>& texts) {
                            return encoder_of(Tokenizer::train(texts, options.tokenizer));
                          }};
  PreparedTokens tokens = prepare_tokens(options, scheme, logger);
  Tokenizer tokenizer = Tokenizer::load(tokens.folder / scheme.file);
  return {std::move(tokens), std::move(tokenizer)};
}

PreparedPassages prepare_passages(const PrepareOptions& options, Passages passages,
                                  const Logger& logger) {
  const Scheme scheme{
      .file = "vocab.txt",
      .form = {"word pieces", passages == Passages::kParagraphs ? "paragraphs" : "documents"},
      .load = [&] { return encoder_of(WordPieces::load(options.tokenizer_model), passages); },
      .train =
          [&](const std::vector<std::string>& texts) {
            return encoder_of(WordPieces::train(texts, options.tokenizer), passages);
          }};
  PreparedTokens tokens = prepare_tokens(options, scheme, logger);
  WordPieces pieces = WordPieces::load(tokens.folder / scheme.file);
  return {std::move(tokens), std::move(pieces)};
}

}  // namespace trireme::text
