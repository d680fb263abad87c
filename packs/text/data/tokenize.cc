#include "packs/text/data/tokenize.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "packs/text/data/text_sample.h"
#include "trireme/error.h"

// One thread reads a batch of files or lines; all of them tokenize it, each taking the next text
// that nobody has; the reader writes the results down in the order of the texts. A batch takes most
// of a second, its reading milliseconds, so that nothing is done at the same time as something
// else.

namespace trireme::text {
namespace {

using data::Token;

constexpr std::size_t kBatchBytes = 4'000'000;  // a thread

/// What one raw text gives.
struct Encoded {
  struct Part {
    std::vector<Token> tokens;
    std::int64_t documents = 0;
  };
  std::array<Part, 2> parts;  ///< Training, held out.
  TextReport report;
  std::exception_ptr problem;
};

Encoded encode(RawText raw, const DocumentEncoder& encoder, const ShardOptions& options) {
  Encoded encoded;
  try {
    for (const std::string& document :
         documents_of(std::move(raw), options.max_document_bytes, encoded.report)) {
      Encoded::Part& part = encoded.parts[is_held_out(document, options.held_out_fraction) ? 1 : 0];
      const std::vector<Token> tokens = encoder.encode(document);
      part.tokens.insert(part.tokens.end(), tokens.begin(), tokens.end());
      ++part.documents;
    }
  } catch (...) {
    encoded.problem = std::current_exception();
  }
  return encoded;
}

/// A named thread that does `work`.
std::jthread start_thread(std::size_t number, std::function<void()> work) {
  try {
    return std::jthread([name = "tokenize " + std::to_string(number), work = std::move(work)] {
      pthread_setname_np(pthread_self(), name.c_str());
      work();
    });
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::kResourceExhausted,
                "cannot start thread " + std::to_string(number) + " of those that tokenize", error);
  }
}

std::vector<Encoded> encode_all(std::vector<RawText> batch, const DocumentEncoder& encoder,
                                const ShardOptions& options) {
  std::vector<Encoded> results(batch.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < batch.size(); i = next++) {
      results[i] = encode(std::move(batch[i]), encoder, options);
    }
  };
  {
    std::vector<std::jthread> others;
    const auto count = std::min<std::size_t>(options.num_threads, batch.size());
    for (std::size_t i = 1; i < count; ++i) others.push_back(start_thread(i, work));
    work();
  }
  return results;
}

std::vector<RawText> read_batch(TextReader& reader, std::size_t bytes) {
  std::vector<RawText> batch;
  for (std::size_t done = 0; done < bytes;) {
    std::optional<RawText> raw = reader.next();
    if (!raw) break;
    done += raw->bytes.size();
    batch.push_back(std::move(*raw));
  }
  return batch;
}

void check_split(const TokenSplit& split, const std::string& name, const TokenIndex& index) {
  if (split.documents > 0) return;
  throw Error(ErrorKind::kInvalidArgument,
              "none of the " + std::to_string(index.report.documents) + " documents is in the " +
                  name + " split; give more text or another held-out fraction (" +
                  to_text(index.report) + ")");
}

}  // namespace

std::vector<std::string> sample_documents(const FileList& files, const ShardOptions& options,
                                          const TokenizerOptions& tokenizer) {
  TextReader reader(files.files, options.max_document_bytes);
  TextSample sample(tokenizer.sample_bytes, tokenizer.seed);
  TextReport report;
  while (std::optional<RawText> raw = reader.next()) {
    for (std::string& document :
         documents_of(std::move(*raw), options.max_document_bytes, report)) {
      if (!is_held_out(document, options.held_out_fraction)) sample.add(std::move(document));
    }
  }
  return sample.finish();
}

TokenIndex write_shards(const FileList& files, const DocumentEncoder& encoder,
                        const ShardOptions& options, const std::filesystem::path& folder) {
  ShardOptions chosen = options;
  if (chosen.num_threads <= 0) {
    chosen.num_threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  TextReader reader(files.files, chosen.max_document_bytes);
  std::array<ShardWriter, 2> writers = {ShardWriter(folder, "training", chosen.shard_tokens),
                                        ShardWriter(folder, "held_out", chosen.shard_tokens)};
  TokenIndex index{.tokenizer_sha256 = encoder.sha256,
                   .vocabulary_size = encoder.vocabulary_size,
                   .report = files.report};
  for (;;) {
    auto batch = read_batch(reader, kBatchBytes * static_cast<std::size_t>(chosen.num_threads));
    if (batch.empty()) break;
    for (const Encoded& encoded : encode_all(std::move(batch), encoder, chosen)) {
      if (encoded.problem) std::rethrow_exception(encoded.problem);
      index.report += encoded.report;
      for (std::size_t s = 0; s < 2; ++s) {
        writers[s].append(encoded.parts[s].tokens, encoded.parts[s].documents);
      }
    }
  }
  index.report += reader.report();
  index.training = writers[0].finish();
  index.held_out = writers[1].finish();
  check_split(index.training, "training", index);
  check_split(index.held_out, "held-out", index);
  return index;
}

}  // namespace trireme::text
