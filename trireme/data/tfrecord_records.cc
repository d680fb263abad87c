#include "trireme/data/tfrecord_records.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "trireme/base/sha256.h"
#include "trireme/data/named_read.h"
#include "trireme/data/tf_example.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr std::string_view kTfrecord = "TFRecord";
constexpr std::int64_t kHeadBytes = 12;  // length and checksum
constexpr std::int64_t kTailBytes = 4;   // checksum

/// CRC32C of RFC 3720, as TFRecord masks it: a file of records inside a record would else have its own checksum.
std::uint32_t masked_crc(std::span<const std::byte> bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // at once
  std::uint32_t crc = ~0U;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kMost));
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    crc = crc32_iscsi(data, static_cast<int>(part.size()), crc);
    bytes = bytes.subspan(part.size());
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

template <typename Number>
Number number_at(std::span<const std::byte> bytes) {
  Number number;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

/// Heads of records. Many small ones are read at once.
class HeadReader {
 public:
  HeadReader(const ShardFiles& shards, int shard) : shards_(shards), shard_(shard) {}

  std::span<const std::byte> head(std::int64_t begin) {
    const std::int64_t end = begin_ + std::ssize(buffer_);
    if (begin < begin_ || begin + kHeadBytes > end) fill(begin);
    return std::span(buffer_).subspan(static_cast<std::size_t>(begin - begin_), kHeadBytes);
  }

 private:
  /// A record that reaches far beyond the buffer is large, and so may be the next ones: then heads alone are read.
  void fill(std::int64_t begin) {
    const bool is_near = begin < begin_ + std::ssize(buffer_) + kNearBytes;
    const std::int64_t wanted = is_near ? kMostBytes : kHeadBytes;
    buffer_.resize(static_cast<std::size_t>(std::min(wanted, shards_.num_bytes(shard_) - begin)));
    begin_ = begin;
    shards_.read(shard_, begin, buffer_);
  }

  static constexpr std::int64_t kMostBytes = 1 << 16, kNearBytes = 1 << 12;
  const ShardFiles& shards_;
  int shard_;
  std::int64_t begin_ = 0;
  std::vector<std::byte> buffer_;
};

std::string record_name(const ShardFiles& shards, const RecordIndex::Place& place) {
  return "record " + std::to_string(place.number) + " of '" + shards.path(place.shard).string() +
         "'";
}

}  // namespace

TfrecordRecords::TfrecordRecords(std::vector<std::filesystem::path> shards,
                                 const UnpackOptions& packed)
    : shards_(std::string(kTfrecord), std::move(shards), packed) {
  for (int shard = 0; shard < shards_.size(); ++shard) add_shard(shard);
}

void TfrecordRecords::add_shard(int shard) {
  const std::int64_t first = num_records();
  const std::int64_t end = shards_.num_bytes(shard);
  HeadReader heads(shards_, shard);
  std::int64_t begin = 0;
  for (std::int64_t number = 0; begin < end; ++number) {
    const auto refuse = [&](const std::string& problem) {
      shards_.refuse(shard, problem + " at record " + std::to_string(number) + ", byte " +
                                std::to_string(begin));
    };
    if (end - begin < kHeadBytes) refuse("is cut off");
    const auto head = heads.head(begin);
    if (number_at<std::uint32_t>(head.subspan(8)) != masked_crc(head.first(8))) {
      refuse(
          "is damaged, or no file of records (a compressed one ends in .gz or .zst): the length "
          "does not match its checksum");
    }
    const auto length = number_at<std::uint64_t>(head);
    const std::int64_t left = end - begin - kHeadBytes - kTailBytes;
    if (left < 0 || length > static_cast<std::uint64_t>(left)) refuse("is cut off");
    index_.add(begin);
    begin += kHeadBytes + static_cast<std::int64_t>(length) + kTailBytes;
  }
  if (index_.finish_shard(end) > 0) learn_kinds(first);
}

template <typename Use>
auto TfrecordRecords::with_example(std::int64_t index, Use use) const {
  const RecordIndex::Place place = index_.at(index, kTfrecord);
  std::vector<std::byte> bytes(static_cast<std::size_t>(place.end - place.begin - kHeadBytes));
  shards_.read(place.shard, place.begin + kHeadBytes, bytes);
  const auto message = std::span(std::as_const(bytes)).first(bytes.size() - kTailBytes);
  const auto tail = std::span(std::as_const(bytes)).last(kTailBytes);
  if (number_at<std::uint32_t>(tail) != masked_crc(message)) {
    throw Error(ErrorKind::kCorruptData,
                record_name(shards_, place) + " is damaged: it does not match its checksum");
  }
  try {
    return use(TfExample(message));
  } catch (const Error& error) {
    throw Error(error.kind(), record_name(shards_, place) + ": " + error.message());
  }
}

/// Of a record that is damaged nothing is learned: reading it says so.
void TfrecordRecords::learn_kinds(std::int64_t index) {
  std::vector<std::pair<std::string, std::string_view>> kinds;
  try {
    with_example(index, [&](const TfExample& example) {
      for (std::string& name : example.names()) kinds.emplace_back(name, example.kind_of(name));
    });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorruptData) throw;
    return;
  }
  for (const auto& [name, kind] : kinds) kinds_.learn(index, name, kind);
}

std::vector<std::string> TfrecordRecords::fields(std::int64_t index) const {
  return with_example(index, [](const TfExample& example) { return example.names(); });
}

std::vector<std::byte> TfrecordRecords::read(std::int64_t index, std::string_view field) const {
  return read_for(*this, index, field, [&] {
    return with_example(index, [&](const TfExample& example) {
      kinds_.check(*this, field, example.kind_of(field));
      return example.read(field);
    });
  });
}

std::string TfrecordRecords::name(std::int64_t index) const {
  return record_name(shards_, index_.at(index, kTfrecord));
}

std::string TfrecordRecords::identity() const {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(kTfrecord)));
  index_.add_to(hash);
  return hash.finish();
}

}  // namespace trireme::data
