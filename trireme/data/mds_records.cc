#include "trireme/data/mds_records.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "trireme/base/json_field.h"
#include "trireme/base/sha256.h"
#include "trireme/data/named_read.h"
#include "trireme/data/unpack.h"
#include "trireme/error.h"
#include "trireme/remote/location.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMds = "MDS shard";
constexpr std::int64_t kWordBytes = 4;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;  // of a shard
constexpr std::string_view kEncodings[] = {
    "str",         "bytes", "json",  "jpeg",    "png",     "str_int", "str_float",
    "str_decimal", "int",   "uint8", "uint16",  "uint32",  "uint64",  "int8",
    "int16",       "int32", "int64", "float16", "float32", "float64"};

std::uint32_t word_at(std::span<const std::byte> bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

/// The file of a shard: as it is, or where that is not there compressed. Elsewhere, where a look costs a request, it is compressed
/// where the index knows such a file: as MosaicML's own reader has it.
fs::path file_of(JsonObject& shard, const fs::path& folder) {
  JsonObject raw(shard.required("raw_data"));
  fs::path path = folder / raw.required("basename").text();
  if (!remote::is_remote(path) && fs::exists(path)) return path;
  const JsonField packed = shard.required("zip_data");
  if (packed.json().is_null()) return path;
  path = folder / JsonObject(packed).required("basename").text();
  if (packing_of(path)) return path;
  throw Error(ErrorKind::kInvalidArgument,
              std::string(kMds) + " '" + path.string() + "' is compressed as " +
                  shard.required("compression").text() + "; expected zstd, gz or none");
}

}  // namespace

struct MdsRecords::Index {
  std::vector<Column> columns;
  std::vector<fs::path> files;
  std::vector<std::int64_t> num_samples, num_bytes;  // of each shard

  explicit Index(const fs::path& folder) {
    const fs::path path = folder / "index.json";
    const ShardFiles file("MDS index", {path});
    const Json json = parse_json(file.read_text(0, 0, file.num_bytes(0)), path.string());
    JsonObject index(JsonField(json, "'" + path.string() + "'"));
    check_version(index.required("version"));
    for (const JsonField& shard : index.required("shards").items()) add(shard, folder);
    if (files.empty()) index.field().fail("there are no shards");
  }

 private:
  static void check_version(const JsonField& version) {
    if (version.integer() == 2) return;
    throw Error(ErrorKind::kInvalidArgument, version.place() + " is " +
                                                 std::to_string(version.integer()) +
                                                 "; expected version 2 of MDS");
  }

  void add(const JsonField& field, const fs::path& folder) {
    JsonObject shard(field);
    check_version(shard.required("version"));
    if (const JsonField form = shard.required("format"); form.text() != "mds") {
      throw Error(ErrorKind::kInvalidArgument,
                  form.place() + " is " + form.text() + "; expected mds");
    }
    std::vector<Column> of_shard = columns_of(shard);
    if (files.empty()) columns = of_shard;
    check_columns(field, of_shard);
    num_samples.push_back(shard.required("samples").integer(1));
    num_bytes.push_back(JsonObject(shard.required("raw_data")).required("bytes").integer(1));
    files.push_back(file_of(shard, folder));
  }

  /// Fails, naming the first column that is not that of the first shard.
  void check_columns(const JsonField& shard, const std::vector<Column>& of_shard) const {
    const auto text = [](const std::vector<Column>& all, std::size_t c) {
      if (c >= all.size()) return std::string("none");
      const std::string size =
          all[c].bytes < 0 ? "" : " of " + std::to_string(all[c].bytes) + " bytes";
      return "'" + all[c].name + "' as " + all[c].encoding + size;
    };
    for (std::size_t c = 0; c < std::max(columns.size(), of_shard.size()); ++c) {
      const std::string own = text(of_shard, c), expected = text(columns, c);
      if (own == expected) continue;
      shard.fail("column " + std::to_string(c) + " is " + own +
                 "; expected that of the first shard, " + expected);
    }
  }

  static std::vector<Column> columns_of(JsonObject& shard) {
    const auto names = shard.required("column_names").items();
    const JsonField encodings = shard.required("column_encodings");
    const JsonField sizes = shard.required("column_sizes");
    if (encodings.items().size() != names.size()) encodings.fail("expected one for each name");
    if (sizes.items().size() != names.size()) sizes.fail("expected one for each name");
    std::vector<Column> columns;
    for (std::size_t c = 0; c < names.size(); ++c) {
      const JsonField size = sizes.items()[c];
      columns.push_back({.name = names[c].text(),
                         .encoding = encodings.items()[c].text(),
                         .bytes = size.json().is_null() ? -1 : size.integer(0, kMostBytes)});
    }
    return columns;
  }
};

MdsRecords::MdsRecords(const fs::path& folder, const UnpackOptions& packed)
    : MdsRecords(Index(folder), packed) {}

MdsRecords::MdsRecords(Index index, const UnpackOptions& packed)
    : columns_(std::move(index.columns)),
      shards_(std::string(kMds), std::move(index.files), packed) {
  for (int shard = 0; shard < shards_.size(); ++shard) {
    const auto s = static_cast<std::size_t>(shard);
    first_.push_back(first_.back() + index.num_samples[s]);
    check_shard(shard, index.num_bytes[s]);
  }
}

std::int64_t MdsRecords::num_samples(int shard) const {
  const auto first = first_.begin() + shard;
  return first[1] - first[0];
}

void MdsRecords::check_shard(int shard, std::int64_t num_bytes) const {
  const std::int64_t bytes = shards_.num_bytes(shard);
  const auto refuse = [&](const std::string& problem) {
    shards_.refuse(shard, problem + "; it is damaged, or not the index's");
  };
  const auto expect = [&](bool is_so, const std::string& problem) {
    if (!is_so) refuse(problem);
  };
  expect(bytes == num_bytes,
         "has " + std::to_string(bytes) + " bytes, in the index " + std::to_string(num_bytes));
  const std::int64_t count = num_samples(shard);
  const std::int64_t head = kWordBytes * (count + 2);
  expect(head <= bytes, "is too short for " + std::to_string(count) + " samples");
  std::vector<std::byte> words(static_cast<std::size_t>(head));
  shards_.read(shard, 0, words);
  const auto word = [&](std::int64_t i) {
    return std::int64_t{
        word_at(std::span(words).subspan(static_cast<std::size_t>(i * kWordBytes)))};
  };
  expect(word(0) == count,
         "has " + std::to_string(word(0)) + " samples, in the index " + std::to_string(count));
  expect(word(1) >= head && word(count + 1) == bytes,
         "has samples that lie elsewhere than it does");
  for (std::int64_t i = 0; i < count; ++i) {
    if (word(i + 1) <= word(i + 2)) continue;
    refuse("has record " + std::to_string(i) + " that ends before it begins");
  }
}

MdsRecords::Place MdsRecords::place(std::int64_t index) const {
  if (index < 0 || index >= num_records()) {
    throw Error(ErrorKind::kInvalidArgument, "MDS: there is no record " + std::to_string(index) +
                                                 " among " + std::to_string(num_records()));
  }
  const auto next = std::ranges::upper_bound(first_, index);
  return {.shard = static_cast<int>(next - first_.begin() - 1), .number = index - *(next - 1)};
}

std::vector<std::string> MdsRecords::fields(std::int64_t index) const {
  place(index);
  std::vector<std::string> names;
  for (const Column& column : columns_) names.push_back(column.name);
  return names;
}

std::vector<std::byte> MdsRecords::read(std::int64_t index, std::string_view field) const {
  const auto wanted = std::ranges::find(columns_, field, &Column::name);
  if (wanted == columns_.end()) {
    std::string names;
    for (const Column& column : columns_) names += " " + column.name;
    throw Error(ErrorKind::kInvalidArgument,
                name(index) + " has no field '" + std::string(field) + "'; it has" + names);
  }
  if (std::ranges::find(kEncodings, wanted->encoding) == std::end(kEncodings)) {
    throw Error(ErrorKind::kInvalidArgument,
                name(index) + ": field '" + std::string(field) + "' is encoded as " +
                    wanted->encoding + "; expected a number, str, json, bytes, jpeg or png");
  }
  const std::vector<std::byte> sample =
      read_for(*this, index, field, [&] { return read_sample(index); });
  const Extent extent = extent_of(*wanted, sample);
  if (extent.begin < 0) {
    throw Error(ErrorKind::kCorruptData,
                name(index) + " is damaged: its columns are not as long as it is");
  }
  const auto begin = sample.begin() + extent.begin;
  return {begin, begin + extent.bytes};
}

std::vector<std::byte> MdsRecords::read_sample(std::int64_t index) const {
  const auto [shard, number] = place(index);
  std::array<std::byte, 2 * kWordBytes> ends{};
  shards_.read(shard, kWordBytes * (1 + number), ends);
  const std::int64_t begin = word_at(ends), end = word_at(std::span(ends).subspan(kWordBytes));
  if (begin > end || end > shards_.num_bytes(shard)) {
    throw Error(ErrorKind::kCorruptData, name(index) + " has changed since it was opened");
  }
  std::vector<std::byte> sample(static_cast<std::size_t>(end - begin));
  shards_.read(shard, begin, sample);
  return sample;
}

MdsRecords::Extent MdsRecords::extent_of(const Column& wanted,
                                         std::span<const std::byte> sample) const {
  std::int64_t at = 0;  // behind the sizes
  for (const Column& column : columns_) at += column.bytes < 0 ? kWordBytes : 0;
  if (at > std::ssize(sample)) return {};
  std::span<const std::byte> sizes = sample;
  Extent extent;
  for (const Column& column : columns_) {
    std::int64_t bytes = column.bytes;
    if (bytes < 0) {
      bytes = word_at(sizes);
      sizes = sizes.subspan(kWordBytes);
    }
    if (&column == &wanted) extent = {.begin = at, .bytes = bytes};
    at += bytes;
  }
  return at == std::ssize(sample) ? extent : Extent{};
}

std::string MdsRecords::name(std::int64_t index) const {
  const auto [shard, number] = place(index);
  return "record " + std::to_string(number) + " of '" + shards_.path(shard).string() + "'";
}

std::string MdsRecords::identity() const {
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.add(std::as_bytes(std::span(text))); };
  add(std::string(kMds) + "\n");
  for (const Column& column : columns_) {
    add(std::to_string(column.name.size()) + " " + column.name + " " + column.encoding + " " +
        std::to_string(column.bytes) + "\n");
  }
  for (int shard = 0; shard < shards_.size(); ++shard) {
    add(std::to_string(num_samples(shard)) + " " + std::to_string(shards_.num_bytes(shard)) + "\n");
  }
  return hash.finish();
}

}  // namespace trireme::data
