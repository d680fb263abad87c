#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "packs/text/data/document_encoder.h"
#include "packs/text/data/documents.h"
#include "packs/text/data/file_list.h"
#include "packs/text/data/shard_writer.h"
#include "packs/text/data/token_index.h"
#include "packs/text/data/tokenizer.h"

namespace trireme::text {

/// How documents become shards.
struct ShardOptions {
  std::int64_t max_document_bytes = kMaxDocumentBytes;  ///< Longer ones become several.
  double held_out_fraction = 0.05;
  std::size_t shard_tokens = kShardTokens;

  int num_threads = 0;  ///< Changes speed only; 0: one per core.
};

/// A part of the documents of `files`, not held out: what a tokenizer is trained on.
///
/// Errors   those of TextReader and documents_of. Cost: one pass over the files.
std::vector<std::string> sample_documents(const FileList& files, const ShardOptions& options,
                                          const TokenizerOptions& tokenizer);

/// Writes the tokens of all documents of `files` into `folder`, in order, as the encoder makes them:
/// `training-*.safetensors`, `held_out-*.safetensors`.
///
/// Returns  the index, not yet written; its report has all counts.
/// Errors   those of TextReader, documents_of and ShardWriter; kInvalidArgument where one of the
///          two splits is empty; kResourceExhausted where threads cannot be started.
/// Order    the result is the same for every number of threads.
/// Cost     the encoder's own time over the threads; memory for 4 MB of text a thread with its
///          tokens, and for the shards being filled.
TokenIndex write_shards(const FileList& files, const DocumentEncoder& encoder,
                        const ShardOptions& options, const std::filesystem::path& folder);

}  // namespace trireme::text
