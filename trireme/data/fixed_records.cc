#include "trireme/data/fixed_records.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "trireme/base/kernel_files.h"
#include "trireme/base/system_error.h"
#include "trireme/data/read_parts.h"
#include "trireme/data/unpack.h"
#include "trireme/error.h"
#include "trireme/remote/location.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;

constexpr int kMostInFlight = 4096;

void require_fixed(bool condition, const std::string& problem) {
  if (!condition) throw Error(ErrorKind::kInvalidArgument, "fixed-size records: " + problem);
}

std::vector<fs::path> not_packed(const std::vector<fs::path>& paths) {
  for (const fs::path& path : paths) {
    require_fixed(!packing_of(remote::shown(path)),
                  "'" + remote::shown(path).string() + "' is compressed; unpack it");
  }
  return paths;
}

/// Which way the files are read, and why, where it is not as they were asked for.
struct Decision {
  FileAccess access = FileAccess::kBuffered;
  std::string why;
};

Decision decide(FileAccess asked, std::int64_t num_bytes) {
  if (asked == FileAccess::kBuffered) return {FileAccess::kBuffered, ""};
  if (asked == FileAccess::kDirect) return {FileAccess::kDirect, ""};
  if (num_bytes > usable_memory_bytes() / 2) return {FileAccess::kDirect, ""};
  return {FileAccess::kBuffered,
          ", as " + std::to_string(num_bytes >> 20) +
              " MiB of files fit into half of the memory that this process may use"};
}

}  // namespace

FixedRecords::FixedRecords(const std::vector<fs::path>& paths, const FixedRecordOptions& options)
    : header_bytes_(options.header_bytes), shards_("file of records", not_packed(paths)) {
  require_fixed(
      options.header_bytes >= 0,
      "the header has " + std::to_string(options.header_bytes) + " bytes; expected 0 or more");
  require_fixed(options.num_in_flight >= 1 && options.num_in_flight <= kMostInFlight,
                std::to_string(options.num_in_flight) + " requests at a time; expected 1 to " +
                    std::to_string(kMostInFlight));
  require_fixed(options.ahead_bytes >= 0,
                std::to_string(options.ahead_bytes) + " bytes to read ahead; expected 0 or more");
  add_fields(options.fields);
  count_records();
  open(options);
}

FixedRecords::~FixedRecords() {
  if (process_.is_here()) return;
  // A thread of the parent may have been within one of these when the child was made; here nobody ends what it began.
  [[maybe_unused]] const auto* ahead = ahead_.release();
  [[maybe_unused]] const auto* buffers = buffers_.release();
  [[maybe_unused]] const auto* files = files_.release();
}

void FixedRecords::add_fields(const std::vector<Field>& fields) {
  std::set<std::string> names;
  for (const Field& field : fields) {
    require_fixed(field.varying.empty(),
                  "field '" + field.name + "' differs in length from record to record");
    const std::int64_t bytes = field.num_bytes();
    require_fixed(!__builtin_add_overflow(record_bytes_, bytes, &record_bytes_),
                  "a record exceeds 64 bits");
    if (field.name.empty()) continue;
    require_fixed(names.insert(field.name).second, "field '" + field.name + "' appears twice");
    fields_.push_back(field);
    parts_.push_back({.begin = static_cast<std::size_t>(record_bytes_ - bytes),
                      .bytes = static_cast<std::size_t>(bytes)});
  }
  require_fixed(!fields_.empty() && record_bytes_ > 0, "there are no fields, or no bytes in them");
}

void FixedRecords::count_records() {
  for (int shard = 0; shard < shards_.size(); ++shard) {
    const std::int64_t bytes = shards_.num_bytes(shard) - header_bytes_;
    if (bytes < 0 || bytes % record_bytes_ != 0) {
      shards_.refuse(shard, "has " + std::to_string(shards_.num_bytes(shard)) +
                                " bytes, which is a header of " + std::to_string(header_bytes_) +
                                " and no whole number of records of " +
                                std::to_string(record_bytes_) +
                                "; it is cut off, or its records are others");
    }
    first_.push_back(first_.back() + bytes / record_bytes_);
  }
}

void FixedRecords::open(const FixedRecordOptions& options) {
  std::int64_t num_bytes = 0;
  for (int shard = 0; shard < shards_.size(); ++shard) num_bytes += shards_.num_bytes(shard);
  Decision decision = decide(options.access, num_bytes);
  if (decision.access == FileAccess::kDirect) {
    try {
      auto ring = std::make_unique<ReadRing>(options.num_in_flight);
      files_ = std::make_unique<const OpenFiles>(shards_, true);
      const ReadAheadLimits limits{.num_in_flight = options.num_in_flight,
                                   .max_bytes = options.ahead_bytes,
                                   .alignment = files_->alignment()};
      buffers_ = std::make_unique<AlignedBuffers>(limits.alignment, std::int64_t{1} << 20);
      ahead_ = std::make_unique<ReadAhead>(limits, std::move(ring),
                                           [this](int file) { return files_->get(file); });
      reading_ = "past the system's cache (O_DIRECT, by " + std::to_string(limits.alignment) +
                 " bytes), up to " + std::to_string(options.num_in_flight) +
                 " requests at a time (io_uring)";
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnavailable) throw;
      decision.why = ", since " + error.message();
    }
  }
  files_ = std::make_unique<const OpenFiles>(shards_, false);
  reading_ = "through the system's cache of files" + decision.why;
}

std::string FixedRecords::reading() const {
  const std::string failure = ahead_ ? ahead_->failure() : "";
  return failure.empty() ? reading_ : reading_ + "; one by one from now on, since " + failure;
}

RecordExtent FixedRecords::extent_of(std::int64_t index) const {
  require_fixed(index >= 0 && index < num_samples(), "there is no record " + std::to_string(index) +
                                                         " among " + std::to_string(num_samples()));
  const auto next = std::ranges::upper_bound(first_, index);
  const std::int64_t begin = header_bytes_ + (index - *(next - 1)) * record_bytes_;
  return {.record = index,
          .file = static_cast<int>(next - first_.begin() - 1),
          .begin = begin,
          .end = begin + record_bytes_};
}

std::string FixedRecords::name(std::int64_t index) const {
  const RecordExtent extent = extent_of(index);
  const std::int64_t number = index - first_[static_cast<std::size_t>(extent.file)];
  return "record " + std::to_string(number) + " of '" + shards_.path(extent.file).string() + "'";
}

void FixedRecords::will_read(std::span<const Sample> samples) const {
  std::vector<RecordExtent> extents;
  extents.reserve(samples.size());
  for (const Sample& sample : samples) extents.push_back(extent_of(sample.index));
  if (extents.empty()) return;
  if (ahead_) return ahead_->want(std::move(extents));
  try {
    advise(std::move(extents));
  } catch (const Error&) {
    return;  // a file that cannot be opened: who reads the record gets the error
  }
}

/// Neighbours as one, sorted.
std::vector<RecordExtent> FixedRecords::joined(std::vector<RecordExtent> extents) {
  constexpr std::int64_t kPageBytes = 4096;
  std::ranges::sort(extents, {}, &RecordExtent::record);
  std::vector<RecordExtent> result;
  for (const RecordExtent& extent : extents) {
    const bool is_near = !result.empty() && result.back().file == extent.file &&
                         extent.begin <= result.back().end + kPageBytes;
    if (!is_near) result.push_back(extent);
    result.back().end = extent.end;
  }
  return result;
}

/// Has the system read what its cache lacks. A few are looked at first: where these are there, so are mostly all.
void FixedRecords::advise(std::vector<RecordExtent> extents) const {
  constexpr std::size_t kLooks = 16;
  const std::vector<RecordExtent> all = joined(std::move(extents));
  bool is_there = true;
  for (std::size_t i = 0; i < kLooks && is_there; ++i)
    is_there = is_cached(all[all.size() * i / kLooks]);
  if (is_there) return;
  for (const RecordExtent& extent : all) {
    ::posix_fadvise(files_->get(extent.file)->number(), extent.begin, extent.end - extent.begin,
                    POSIX_FADV_WILLNEED);
  }
}

bool FixedRecords::is_cached(const RecordExtent& extent) const {
  std::byte byte{};
  const iovec to{.iov_base = &byte, .iov_len = 1};
  return ::preadv2(files_->get(extent.file)->number(), &to, 1, extent.begin, RWF_NOWAIT) == 1;
}

std::shared_ptr<const Descriptor> FixedRecords::file_of(const RecordExtent& extent) const {
  try {
    return files_->get(extent.file);
  } catch (const Error& error) {
    throw Error(error.kind(), name(extent.record) + ": " + error.message());
  }
}

void FixedRecords::read(Sample sample, std::span<const std::span<std::byte>> destinations) const {
  const RecordExtent extent = extent_of(sample.index);
  require_fixed(destinations.size() == fields_.size(),
                "expected " + std::to_string(fields_.size()) + " destinations, got " +
                    std::to_string(destinations.size()));
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    require_fixed(destinations[f].size() == parts_[f].bytes,
                  "field '" + fields_[f].name + "': expected a destination of " +
                      std::to_string(parts_[f].bytes) + " bytes, got " +
                      std::to_string(destinations[f].size()));
  }
  ReadTimer timer("read");
  timer.add_bytes(record_bytes_);
  const ReadAhead::Bytes ahead = ahead_ ? ahead_->take(sample.index) : ReadAhead::Bytes();
  if (ahead.owner) return split(ahead.bytes, destinations);
  read_now(extent, destinations);
}

void FixedRecords::split(std::span<const std::byte> record,
                         std::span<const std::span<std::byte>> to) const {
  for (std::size_t f = 0; f < parts_.size(); ++f) {
    if (parts_[f].bytes == 0) continue;
    std::memcpy(to[f].data(), record.data() + parts_[f].begin, parts_[f].bytes);
  }
}

void FixedRecords::read_now(const RecordExtent& extent,
                            std::span<const std::span<std::byte>> to) const {
  const auto alignment = static_cast<std::int64_t>(files_->alignment());
  const std::int64_t begin = extent.begin / alignment * alignment;
  const std::int64_t end = (extent.end + alignment - 1) / alignment * alignment;
  const auto offset = static_cast<std::size_t>(extent.begin - begin);
  const auto length = static_cast<std::size_t>(end - begin);
  if (ahead_) {
    const AlignedBuffers::Lease buffer = buffers_->get(length);
    read_range(extent, buffer.bytes().first(length), begin);
    return split(buffer.bytes().subspan(offset), to);
  }
  if (to.size() == 1 && to[0].size() == length) return read_range(extent, to[0], begin);
  std::vector<std::byte> buffer(length);
  read_range(extent, buffer, begin);
  split(buffer, to);
}

/// Reads on until the record is there; where that ends early, it is cut off. A read that fails is tried twice: a disk may have
/// remembered a sector that is bad, and found another.
void FixedRecords::read_range(const RecordExtent& extent, std::span<std::byte> to,
                              std::int64_t begin) const {
  const auto file = file_of(extent);
  const auto alignment = static_cast<std::int64_t>(files_->alignment());
  std::int64_t at = begin;
  bool has_failed = false;
  while (at < extent.end) {
    const auto rest = to.subspan(static_cast<std::size_t>(at - begin));
    const ssize_t got = ::pread(file->number(), rest.data(), rest.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EIO && !std::exchange(has_failed, true)) continue;
    if (got < 0) throw_system_error("read " + name(extent.record), errno);
    at += got;
    const bool is_end = got == 0 || (at < extent.end && at % alignment != 0);
    if (!is_end) continue;
    throw Error(ErrorKind::kCorruptData,
                name(extent.record) + " ends at byte " + std::to_string(at) + " of " +
                    std::to_string(extent.end) + ": the file has got shorter since it was opened");
  }
}

std::shared_ptr<const Source> open_fixed_records(const std::vector<fs::path>& paths,
                                                 const FixedRecordOptions& options) {
  return std::make_shared<FixedRecords>(paths, options);
}

}  // namespace trireme::data
