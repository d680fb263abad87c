#include "trireme/data/tar_records.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>

#include "trireme/base/descriptor.h"
#include "trireme/base/sha256.h"
#include "trireme/data/named_read.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeaderReadBytes = 16384;  // what lies between headers is skipped
constexpr std::int64_t kEndMarkBytes = 512;      // at least; tar writes 1024

/// A member's name in its two parts; neither where it belongs to no record.
struct MemberName {
  std::string record, field;
};

std::optional<MemberName> split_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t dot = path.find('.', begin);
  if (dot == std::string::npos || dot == begin) return std::nullopt;
  MemberName name{.record = path.substr(0, dot), .field = path.substr(dot + 1)};
  for (char& letter : name.field) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return name;
}

}  // namespace

/// The files of a shard, one header after the other.
class TarRecords::ShardReader {
 public:
  ShardReader(const ShardFiles& shards, int shard)
      : shards_(shards),
        shard_(shard),
        file_(shards.open(shard)),
        bytes_(shards.num_bytes(shard)),
        archive_(archive_read_new(), archive_read_free) {
    archive_read_support_format_tar(archive_.get());
    check(archive_read_open_fd(archive_.get(), file_.number(), kHeaderReadBytes));
  }

  /// Moves to the next file. False at the end.
  bool next(std::string& path, Member& member) {
    archive_entry* entry = nullptr;
    while (next_header(entry)) {
      path = name_of(entry);
      member.begin = archive_filter_bytes(archive_.get(), 0);
      member.bytes = archive_entry_size(entry);
      const bool is_link = archive_entry_hardlink(entry) || archive_entry_symlink(entry);
      if (archive_entry_filetype(entry) != AE_IFREG || is_link) continue;
      if (archive_entry_sparse_count(entry) > 0) {
        shards_.refuse(shard_,
                       "has a file with holes, '" + path + "', which cannot be read in parts");
      }
      end_ = member.begin + member.bytes;
      if (end_ > bytes_) {
        shards_.refuse(shard_, "is cut off: '" + path + "' ends at byte " + std::to_string(end_) +
                                   ", the shard at " + std::to_string(bytes_));
      }
      return true;
    }
    if (bytes_ < end_ + kEndMarkBytes)
      shards_.refuse(shard_, "is cut off: its end mark is missing");
    return false;
  }

 private:
  bool next_header(archive_entry*& entry) {
    const int result = archive_read_next_header(archive_.get(), &entry);
    if (result != ARCHIVE_EOF) check(result);
    return result != ARCHIVE_EOF;
  }

  /// As it stands in the file; of a pax header that the locale cannot express, in UTF-8.
  std::string name_of(archive_entry* entry) const {
    const char* name = archive_entry_pathname(entry);
    if (!name) name = archive_entry_pathname_utf8(entry);
    if (!name) shards_.refuse(shard_, "has a file whose name cannot be read");
    return name;
  }

  /// Warnings are about what is not read here, as names in other encodings.
  void check(int result) const {
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN) return;
    const char* reason = archive_error_string(archive_.get());
    shards_.refuse(shard_, "cannot be read, by byte " +
                               std::to_string(archive_filter_bytes(archive_.get(), 0)) + ": " +
                               (reason ? reason : "no reason is given") +
                               "; expected a tar file that is whole and not compressed");
  }

  const ShardFiles& shards_;
  int shard_;
  Descriptor file_;
  std::int64_t bytes_;
  std::int64_t end_ = 0;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
};

TarRecords::TarRecords(std::vector<fs::path> shards) : shards_("tar shard", std::move(shards)) {
  for (int i = 0; i < shards_.size(); ++i) add_shard(i);
}

void TarRecords::add_shard(std::int32_t shard) {
  ShardReader reader(shards_, shard);
  const std::size_t before = records_.size();
  std::string name;
  for (Member member; reader.next(name, member);) add_member(shard, name, member);
  if (records_.size() == before) shards_.refuse(shard, "has no records");
}

void TarRecords::add_member(std::int32_t shard, const std::string& path, Member member) {
  const auto name = split_name(path);
  if (!name) return;
  member.field = field_number(name->field);
  const bool is_same =
      !records_.empty() && records_.back().shard == shard && records_.back().name == name->record;
  if (!is_same) {
    records_.push_back({.name = name->record, .members = members_.size(), .shard = shard});
  }
  const auto begin = members_.begin() + static_cast<std::ptrdiff_t>(records_.back().members);
  if (std::ranges::find(begin, members_.end(), member.field, &Member::field) != members_.end()) {
    shards_.refuse(shard, "has two files '" + path + "'");
  }
  members_.push_back(member);
}

std::int32_t TarRecords::field_number(const std::string& name) {
  const auto found = std::ranges::find(fields_, name);
  const auto number = static_cast<std::int32_t>(found - fields_.begin());
  if (found == fields_.end()) fields_.push_back(name);
  return number;
}

const TarRecords::Record& TarRecords::record(std::int64_t index) const {
  if (index < 0 || index >= num_records()) {
    throw Error(ErrorKind::kInvalidArgument, "tar shards: there is no record " +
                                                 std::to_string(index) + " among " +
                                                 std::to_string(num_records()));
  }
  return records_[static_cast<std::size_t>(index)];
}

std::vector<TarRecords::Member> TarRecords::members(std::int64_t index) const {
  const auto next = static_cast<std::size_t>(index + 1);
  const std::size_t end = next < records_.size() ? records_[next].members : members_.size();
  return {members_.begin() + static_cast<std::ptrdiff_t>(record(index).members),
          members_.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::vector<std::string> TarRecords::fields(std::int64_t index) const {
  std::vector<std::string> names;
  for (const Member& member : members(index)) {
    names.push_back(fields_[static_cast<std::size_t>(member.field)]);
  }
  return names;
}

std::vector<std::byte> TarRecords::read(std::int64_t index, std::string_view field) const {
  const std::vector<Member> all = members(index);
  const auto found = std::ranges::find_if(all, [&](const Member& member) {
    return fields_[static_cast<std::size_t>(member.field)] == field;
  });
  if (found == all.end()) {
    throw Error(ErrorKind::kInvalidArgument,
                name(index) + " has no field '" + std::string(field) + "'");
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(found->bytes));
  return read_for(*this, index, field, [&] {
    shards_.read(record(index).shard, found->begin, bytes);
    return std::move(bytes);
  });
}

std::string TarRecords::name(std::int64_t index) const {
  const Record& one = record(index);
  return "record '" + one.name + "' of '" + shards_.path(one.shard).string() + "'";
}

std::string TarRecords::identity() const {
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.add(std::as_bytes(std::span(text))); };
  add("tar shards\n");
  for (std::int64_t i = 0; i < num_records(); ++i) {
    const Record& one = record(i);
    add(std::to_string(one.shard) + " " + std::to_string(one.name.size()) + " " + one.name + "\n");
    for (const Member& member : members(i)) {
      add(fields_[static_cast<std::size_t>(member.field)] + " " + std::to_string(member.begin) +
          " " + std::to_string(member.bytes) + "\n");
    }
  }
  return hash.finish();
}

}  // namespace trireme::data
