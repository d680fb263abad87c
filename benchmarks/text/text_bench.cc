// Question: what does turning files into token shards cost over SentencePiece alone?
//
// Ours: files listed before are read, checked, hashed, tokenized, written into shards and synced.
// Plain: a loop over the same documents, in memory, that calls SentencePiece's Encode. Tokens are
// compared first. Source code of Python's library, or of a folder that is named.

#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "benchmarks/alternate.h"
#include "benchmarks/machine.h"
#include "trireme/base/json.h"
#include "trireme/data/text/token_shards.h"
#include "trireme/data/text/tokenize.h"

namespace trireme::benchmarks {
namespace {

namespace fs = std::filesystem;
using text::ShardOptions;

constexpr std::int64_t kBytes = 2'000'000;
constexpr int kRounds = 20;

/// Files from all over the folder, about kBytes of them.
text::FileList some_files(const fs::path& folder) {
  const fs::path inputs[] = {folder};
  const std::string suffixes[] = {".py"};
  const text::FileList all = text::list_files(inputs, suffixes);
  std::int64_t total = 0;
  for (const text::TextFile& file : all.files) total += file.bytes;
  const auto step = static_cast<std::size_t>(std::max<std::int64_t>(1, total / kBytes));
  text::FileList some;
  for (std::size_t i = 0; i < all.files.size(); i += step) some.files.push_back(all.files[i]);
  some.report.files = static_cast<std::int64_t>(some.files.size());
  return some;
}

struct Documents {
  std::vector<std::string> training;
  std::vector<std::string> held_out;
  std::int64_t bytes = 0;
};

Documents read_documents(const text::FileList& files, const ShardOptions& options) {
  Documents documents;
  text::TextReader reader(files.files, options.max_document_bytes);
  text::TextReport report;
  while (auto raw = reader.next()) {
    for (std::string& one :
         text::documents_of(std::move(*raw), options.max_document_bytes, report)) {
      documents.bytes += static_cast<std::int64_t>(one.size());
      const bool is_held_out = text::is_held_out(one, options.held_out_fraction);
      (is_held_out ? documents.held_out : documents.training).push_back(std::move(one));
    }
  }
  return documents;
}

using Ids = std::vector<int>;

/// The plain loop; the end token behind each document as in the shards.
Ids encode_plainly(const sentencepiece::SentencePieceProcessor& model,
                   const std::vector<std::string>& documents) {
  Ids all, ids;
  for (const std::string& document : documents) {
    if (!model.Encode(document, &ids).ok()) std::abort();
    all.insert(all.end(), ids.begin(), ids.end());
    all.push_back(model.eos_id());
  }
  return all;
}

std::int64_t count_wrong(const Ids& expected, const text::TokenShards& shards) {
  Ids found(static_cast<std::size_t>(shards.num_tokens()));
  shards.read(0, found);
  std::int64_t wrong = expected.size() == found.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    wrong += expected[i] == found[i] ? 0 : 1;
  }
  return wrong;
}

Json measure(const fs::path& folder, int num_threads) {
  const text::FileList files = some_files(folder);
  const ShardOptions options{.num_threads = num_threads};
  const Documents documents = read_documents(files, options);
  const auto tokenizer = text::Tokenizer::train(documents.training, {.num_pieces = 8000});
  sentencepiece::SentencePieceProcessor model;
  if (!model.LoadFromSerializedProto(tokenizer.bytes()).ok()) std::abort();

  const fs::path target =
      fs::temp_directory_path() / ("trireme_text_bench_" + std::to_string(::getpid()));
  fs::create_directories(target);
  text::TokenIndex index;
  Ids training, held_out;
  const auto ours = [&] { index = text::write_shards(files, tokenizer, options, target); };
  const auto plain = [&] {
    training = encode_plainly(model, documents.training);
    held_out = encode_plainly(model, documents.held_out);
  };
  const Times times = alternate(plain, ours, kRounds);
  const auto open = [&](const text::TokenSplit& split) {
    return text::TokenShards(target, split, index.vocabulary_size);
  };
  const std::int64_t wrong =
      count_wrong(training, open(index.training)) + count_wrong(held_out, open(index.held_out));
  fs::remove_all(target);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < times.first_ms.size(); ++i) {
    ratios.push_back(times.first_ms[i] / times.second_ms[i]);
  }
  const auto speed = [&](double ms) { return static_cast<double>(documents.bytes) / ms / 1e3; };
  return {{"operation", "tokenize"},
          {"documents", documents.training.size() + documents.held_out.size()},
          {"bytes", documents.bytes},
          {"tokens", training.size() + held_out.size()},
          {"pieces", tokenizer.num_pieces()},
          {"threads", num_threads},
          {"plain_ms", median(times.first_ms)},
          {"ours_ms", median(times.second_ms)},
          {"ours_p95_ms", quantile(times.second_ms, 0.95)},
          {"plain_mb_per_s", speed(median(times.first_ms))},
          {"ours_mb_per_s", speed(median(times.second_ms))},
          {"ratio_of_medians", median(times.first_ms) / median(times.second_ms)},
          {"median_of_ratios", median(ratios)},
          {"wrong", wrong}};
}

int run(const fs::path& folder, const std::string& json_file) {
  const Machine machine;
  fmt::print("load before {}\n", machine.load());
  Json results = Json::array();
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (const int threads : {1, cores}) {
    results.push_back(measure(folder, threads));
    const Json& r = results.back();
    fmt::print(
        "tokenize  {} documents, {} bytes, {} tokens, {} pieces  threads {}  plain {:.0f} ms "
        "({:.2f} MB/s)  ours {:.0f} ms ({:.2f} MB/s, p95 {:.0f} ms)  speed of plain {:.3f} (median "
        "of ratios {:.3f})  wrong {}\n",
        r["documents"].get<int>(), r["bytes"].get<std::int64_t>(), r["tokens"].get<std::int64_t>(),
        r["pieces"].get<int>(), threads, r["plain_ms"].get<double>(),
        r["plain_mb_per_s"].get<double>(), r["ours_ms"].get<double>(),
        r["ours_mb_per_s"].get<double>(), r["ours_p95_ms"].get<double>(),
        r["ratio_of_medians"].get<double>(), r["median_of_ratios"].get<double>(),
        r["wrong"].get<std::int64_t>());
    std::fflush(stdout);
  }
  if (!json_file.empty()) std::ofstream(json_file) << results.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  std::filesystem::path folder = "/usr/lib/python3.11";
  std::string json_file;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--json" && i + 1 < argc) {
      json_file = argv[++i];
    } else {
      folder = argv[i];
    }
  }
  return trireme::benchmarks::run(folder, json_file);
}
