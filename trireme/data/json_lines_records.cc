#include "trireme/data/json_lines_records.h"

#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "trireme/base/json.h"
#include "trireme/base/sha256.h"
#include "trireme/data/named_read.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr std::string_view kJsonLines = "JSON lines";

bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

/// Finds the lines of a shard whose bytes arrive in pieces.
class LineFinder {
 public:
  LineFinder(const ShardFiles& shards, int shard, RecordIndex& index)
      : shards_(shards), shard_(shard), index_(index) {}

  void add(std::span<const std::byte> piece) {
    std::string_view text(reinterpret_cast<const char*>(piece.data()), piece.size());
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      add_part(text.substr(0, end));
      if (end == std::string_view::npos) return;
      ++at_;
      finish_line();
      text.remove_prefix(end + 1);
    }
  }

  /// At the end of the shard, whose last line may do without a line feed.
  void finish() {
    if (at_ > begin_) finish_line();
  }

 private:
  void add_part(std::string_view part) {
    at_ += std::ssize(part);
    for (std::size_t i = 0; first_ == 0 && i < part.size(); ++i) {
      if (!is_blank(part[i])) first_ = part[i];
    }
    for (std::size_t i = part.size(); i > 0; --i) {
      if (is_blank(part[i - 1])) continue;
      last_ = part[i - 1];
      return;
    }
  }

  void finish_line() {
    ++line_;
    if (first_ != '{' || last_ != '}') {
      shards_.refuse(shard_, "line " + std::to_string(line_) +
                                 (first_ == 0 ? " is empty" : " is no JSON object, or is cut off") +
                                 "; expected {..} on each line");
    }
    index_.add(begin_);
    begin_ = at_;
    first_ = last_ = 0;
  }

  const ShardFiles& shards_;
  int shard_;
  RecordIndex& index_;
  std::int64_t line_ = 0, begin_ = 0, at_ = 0;
  char first_ = 0, last_ = 0;  // of the line, white space aside
};

std::string line_name(const ShardFiles& shards, const RecordIndex::Place& place) {
  return "line " + std::to_string(place.number + 1) + " of " + shards.path(place.shard).string();
}

/// For FieldKinds.
std::string_view kind_of(const Json& value) {
  if (value.is_string()) return "a text";
  if (value.is_number()) return "a number";
  if (value.is_boolean()) return "true or false";
  if (value.is_array()) return "a list";
  return value.is_object() ? "an object" : "";
}

Json parse_line(const ShardFiles& shards, const RecordIndex::Place& place) {
  return parse_json(shards.read_text(place.shard, place.begin, place.end),
                    line_name(shards, place));
}

}  // namespace

JsonLinesRecords::JsonLinesRecords(std::vector<std::filesystem::path> shards,
                                   const UnpackOptions& packed)
    : shards_(std::string(kJsonLines), std::move(shards), packed) {
  for (int shard = 0; shard < shards_.size(); ++shard) add_shard(shard);
}

void JsonLinesRecords::add_shard(int shard) {
  LineFinder lines(shards_, shard, index_);
  shards_.scan(shard, [&](std::span<const std::byte> piece) { lines.add(piece); });
  lines.finish();
  const std::int64_t count = index_.finish_shard(shards_.num_bytes(shard));
  learn_kinds(num_records() - count);
  learn_kinds(num_records() - 1);
}

void JsonLinesRecords::learn_kinds(std::int64_t index) {
  const Json record = parse_line(shards_, index_.at(index, kJsonLines));
  for (const auto& [field, value] : record.items()) {
    kinds_.learn(index, field, kind_of(value));
  }
}

std::vector<std::string> JsonLinesRecords::fields(std::int64_t index) const {
  const Json record = parse_line(shards_, index_.at(index, kJsonLines));
  std::vector<std::string> names;
  for (const auto& [name, value] : record.items()) names.push_back(name);
  return names;
}

std::vector<std::byte> JsonLinesRecords::read(std::int64_t index, std::string_view field) const {
  const Json record = read_for(*this, index, field,
                               [&] { return parse_line(shards_, index_.at(index, kJsonLines)); });
  const auto found = record.find(field);
  if (found == record.end()) {
    std::string names;
    for (const auto& [name, value] : record.items()) names += " " + name;
    throw Error(ErrorKind::kInvalidArgument, "'" + name(index) + "' has no field '" +
                                                 std::string(field) + "'; it has" +
                                                 (names.empty() ? " none" : names));
  }
  naming_record(*this, index, [&] { kinds_.check(*this, field, kind_of(*found)); });
  const std::string text =
      found->is_string() ? found->get_ref<const std::string&>() : compact_text(*found);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string JsonLinesRecords::name(std::int64_t index) const {
  return line_name(shards_, index_.at(index, kJsonLines));
}

std::string JsonLinesRecords::identity() const {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(kJsonLines)));
  index_.add_to(hash);
  return hash.finish();
}

}  // namespace trireme::data
