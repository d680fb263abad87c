#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "packs/text/data/document_encoder.h"
#include "packs/text/data/documents.h"
#include "packs/text/data/report.h"
#include "packs/text/data/token_shards.h"
#include "packs/text/data/tokenizer.h"
#include "packs/text/data/word_pieces.h"
#include "trireme/base/log.h"

namespace trireme::text {

struct PrepareOptions {
  // Changes results.
  std::vector<std::filesystem::path> inputs;            ///< Files and folders.
  std::vector<std::string> suffixes;                    ///< Of files in folders, `.py`; none: all.
  TokenizerOptions tokenizer;                           ///< One is trained like this ..
  std::filesystem::path tokenizer_model;                ///< .. unless this names the file of one.
  double held_out_fraction = 0.05;                      ///< Of the documents; in (0, 1).
  std::int64_t max_document_bytes = kMaxDocumentBytes;  ///< Longer ones become several.

  // Changes speed only.
  std::filesystem::path cache;  ///< Folder for what was prepared; made where it is missing.
  int num_threads = 0;          ///< 0: one per core.
  std::chrono::milliseconds max_wait = std::chrono::hours(6);  ///< For another process's work.
};

/// What is in the cache.
struct PreparedTokens {
  TokenShards training;
  TokenShards held_out;
  TextReport report;
  std::filesystem::path folder;  ///< tokens.json, the tokenizer's file, shards.
  bool was_cached = false;
};

struct Prepared : PreparedTokens {
  Tokenizer tokenizer;
};

struct PreparedPassages : PreparedTokens {
  WordPieces pieces;
};

/// Text files to tokens, once: what the cache has for the same options and the same files (names,
/// sizes, times of change) is opened. Of processes that start together one prepares, the others
/// wait for it; where it ends early the next one starts anew. The folder gets its name when all is
/// on the device. A cache that has it may be read only.
///
/// logger   is told what is made, waited for and found.
/// Errors   those of list_files, Tokenizer, write_shards; kInvalidArgument where the held-out
///          fraction is not in (0, 1); kCorruptData where what the cache holds was damaged;
///          kIo where files change meanwhile or the cache cannot be read or cleared; kTimeout.
///          Nothing stays under the final name then.
/// Threads  any, of any process. Blocking.
Prepared prepare(const PrepareOptions& options, const Logger& logger);

/// The same with word pieces, passage by passage (document_encoder.h). `tokenizer_model` names a
/// vocab.txt.
PreparedPassages prepare_passages(const PrepareOptions& options, Passages passages,
                                  const Logger& logger);

}  // namespace trireme::text
