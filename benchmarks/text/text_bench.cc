// Question: what does turning files into token shards cost over SentencePiece alone?
//
// Ours: files listed before are read, checked, hashed, tokenized, written into shards and synced.
// Plain: a loop over the same documents, in memory, that calls SentencePiece's Encode. Tokens are
// compared first; exit code 1 where they differ. Source code of Python's library, or of a folder
// that is named.

#include <fmt/format.h>
#include <glob.h>
#include <sentencepiece_processor.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <system_error>
#include <thread>

#include "benchmarks/alternate.h"
#include "benchmarks/machine.h"
#include "packs/text/data/token_shards.h"
#include "packs/text/data/tokenize.h"
#include "trireme/base/json.h"

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

/// Both, over the same documents, and what they made last.
class Contenders {
 public:
  Contenders(const text::FileList& files, int num_threads)
      : files_(files),
        options_{.num_threads = num_threads},
        documents_(read_documents(files, options_)),
        tokenizer_(text::Tokenizer::train(documents_.training, {.num_pieces = 8000})),
        target_(fs::temp_directory_path() / ("trireme_text_bench_" + std::to_string(::getpid()))) {
    if (!model_.LoadFromSerializedProto(tokenizer_.bytes()).ok()) std::abort();
    fs::create_directories(target_);
  }
  ~Contenders() {
    std::error_code problem;
    fs::remove_all(target_, problem);
  }
  Contenders(const Contenders&) = delete;
  Contenders& operator=(const Contenders&) = delete;

  void ours() {
    index_ = text::write_shards(files_, text::encoder_of(tokenizer_), options_, target_);
  }

  void plain() {
    training_ = encode_plainly(model_, documents_.training);
    held_out_ = encode_plainly(model_, documents_.held_out);
  }

  std::int64_t count_wrong() const {
    return benchmarks::count_wrong(training_, open(index_.training)) +
           benchmarks::count_wrong(held_out_, open(index_.held_out));
  }

  std::int64_t bytes() const { return documents_.bytes; }

  Json facts() const {
    return {{"operation", "tokenize"},
            {"documents", documents_.training.size() + documents_.held_out.size()},
            {"bytes", documents_.bytes},
            {"tokens", training_.size() + held_out_.size()},
            {"pieces", tokenizer_.num_pieces()},
            {"threads", options_.num_threads}};
  }

 private:
  text::TokenShards open(const text::TokenSplit& split) const {
    return {target_, split, index_.vocabulary_size};
  }

  text::FileList files_;
  ShardOptions options_;
  Documents documents_;
  text::Tokenizer tokenizer_;
  sentencepiece::SentencePieceProcessor model_;
  fs::path target_;
  text::TokenIndex index_;
  Ids training_, held_out_;
};

Json measure(const text::FileList& files, int num_threads) {
  Contenders contenders(files, num_threads);
  contenders.plain();
  contenders.ours();
  Json result = contenders.facts();
  result["wrong"] = contenders.count_wrong();
  const Times times = alternate([&] { contenders.plain(); }, [&] { contenders.ours(); }, kRounds);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < times.first_ms.size(); ++i) {
    ratios.push_back(times.first_ms[i] / times.second_ms[i]);
  }
  const double plain_ms = median(times.first_ms), ours_ms = median(times.second_ms);
  const auto speed = [&](double ms) { return static_cast<double>(contenders.bytes()) / ms / 1e3; };
  result.update({{"plain_ms", plain_ms},
                 {"ours_ms", ours_ms},
                 {"ours_p95_ms", quantile(times.second_ms, 0.95)},
                 {"plain_mb_per_s", speed(plain_ms)},
                 {"ours_mb_per_s", speed(ours_ms)},
                 {"ratio_of_medians", plain_ms / ours_ms},
                 {"median_of_ratios", median(ratios)}});
  return result;
}

void print(const Json& r) {
  fmt::print(
      "tokenize  {} documents, {} bytes, {} tokens, {} pieces  threads {}  plain {:.0f} ms "
      "({:.2f} MB/s)  ours {:.0f} ms ({:.2f} MB/s, p95 {:.0f} ms)  speed of plain {:.3f} (median "
      "of ratios {:.3f})  wrong {}\n",
      r["documents"].get<int>(), r["bytes"].get<std::int64_t>(), r["tokens"].get<std::int64_t>(),
      r["pieces"].get<int>(), r["threads"].get<int>(), r["plain_ms"].get<double>(),
      r["plain_mb_per_s"].get<double>(), r["ours_ms"].get<double>(),
      r["ours_mb_per_s"].get<double>(), r["ours_p95_ms"].get<double>(),
      r["ratio_of_medians"].get<double>(), r["median_of_ratios"].get<double>(),
      r["wrong"].get<std::int64_t>());
  std::fflush(stdout);
}

/// The last of the folders `/usr/lib/python3.*` that hold a library; empty where there is none.
fs::path python_library() {
  glob_t found{};
  fs::path folder;
  if (glob("/usr/lib/python3.*/abc.py", 0, nullptr, &found) == 0) {
    folder = fs::path(found.gl_pathv[found.gl_pathc - 1]).parent_path();
  }
  globfree(&found);
  return folder;
}

/// Exit code: 1 where tokens differ.
int run(const fs::path& folder, const std::string& json_file) {
  if (folder.empty()) {
    fmt::print(stderr, "there is no Python library in /usr/lib: name a folder of .py files\n");
    return 2;
  }
  const Machine machine;
  fmt::print("{}  load before {}\n", folder.string(), machine.load());
  const text::FileList files = some_files(folder);
  Json results = Json::array();
  std::int64_t wrong = 0;
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (const int threads : {1, cores}) {
    results.push_back(measure(files, threads));
    print(results.back());
    wrong += results.back()["wrong"].get<std::int64_t>();
  }
  if (!json_file.empty()) std::ofstream(json_file) << results.dump(2) << "\n";
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  std::filesystem::path folder;
  std::string json_file;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--json" && i + 1 < argc) {
      json_file = argv[++i];
    } else {
      folder = argv[i];
    }
  }
  if (folder.empty()) folder = trireme::benchmarks::python_library();
  return trireme::benchmarks::run(folder, json_file);
}
