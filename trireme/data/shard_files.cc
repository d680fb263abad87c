#include "trireme/data/shard_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "trireme/base/system_error.h"
#include "trireme/data/unpack.h"
#include "trireme/error.h"
#include "trireme/remote/location.h"

namespace trireme::data {

namespace fs = std::filesystem;

ShardFiles::ShardFiles(std::string form, std::vector<fs::path> paths,
                       const std::optional<UnpackOptions>& packed)
    : form_(std::move(form)) {
  if (paths.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "there are no files: expected at least one " + form_);
  }
  std::vector<fs::path> elsewhere;
  std::ranges::copy_if(paths, std::back_inserter(elsewhere), remote::is_remote);
  if (!elsewhere.empty()) {
    remote_ = std::make_shared<remote::RemoteFiles>(elsewhere, read_remote_environment());
  }
  int num_remote = 0;
  for (const fs::path& path : paths) {
    Shard shard{.path = path};
    if (remote::is_remote(path)) {
      shard.path = remote::shown(path);
      shard.remote = num_remote++;
    }
    add(std::move(shard), packed);
  }
}

void ShardFiles::add(Shard shard, const std::optional<UnpackOptions>& packed) {
  const Descriptor file = open(shard);
  shard.bytes = size_of(file, shard.path);
  if (shard.bytes > 0 && packed && packing_of(shard.path)) unpack_shard(shard, file, *packed);
  shards_.push_back(std::move(shard));
  if (shards_.back().bytes == 0) refuse(size() - 1, "is empty");
}

void ShardFiles::unpack_shard(Shard& shard, const Descriptor& file, const UnpackOptions& options) {
  if (!unpacked_) {
    unpacked_.emplace(options.folder.empty() ? fs::temp_directory_path() : options.folder);
  }
  shard.begin = unpacked_bytes_;
  unpack(file, shard.path, *packing_of(shard.path), [&](std::span<const std::byte> bytes) {
    unpacked_bytes_ += std::ssize(bytes);
    if (unpacked_bytes_ > options.max_bytes) {
      throw Error(ErrorKind::kResourceExhausted,
                  form_ + " '" + shard.path.string() + "': unpacked, the files are larger than " +
                      std::to_string(options.max_bytes) +
                      " bytes; raise UnpackOptions::max_bytes, or unpack them beforehand");
    }
    unpacked_->append(bytes);
  });
  shard.bytes = unpacked_bytes_ - shard.begin;
}

std::int64_t ShardFiles::size_of(const Descriptor& file, const fs::path& path) const {
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) throw_system_error("inspect " + form_, path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kInvalidArgument, form_ + " '" + path.string() + "' is no file");
  }
  return status.st_size;
}

void ShardFiles::refuse(int shard, const std::string& problem) const {
  throw Error(ErrorKind::kCorruptData, form_ + " '" + path(shard).string() + "' " + problem);
}

Descriptor ShardFiles::open(const Shard& shard) const {
  if (shard.remote >= 0) return remote_->open(shard.remote);
  Descriptor file(::open(shard.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw_system_error("open " + form_, shard.path, errno);
  return file;
}

Descriptor ShardFiles::open(int shard) const {
  Descriptor file = open(at(shard));
  if (const std::int64_t bytes = size_of(file, path(shard)); bytes != num_bytes(shard)) {
    refuse(shard, "has changed since it was opened: it had " + std::to_string(num_bytes(shard)) +
                      " bytes and has " + std::to_string(bytes));
  }
  return file;
}

void ShardFiles::read(int shard, std::int64_t begin, std::span<std::byte> bytes) const {
  if (at(shard).begin >= 0) {
    unpacked_->read(static_cast<std::uint64_t>(at(shard).begin + begin), bytes);
    return;
  }
  const Descriptor file = open(shard);
  while (!bytes.empty()) {
    const ssize_t got = ::pread(file.number(), bytes.data(), bytes.size(), begin);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system_error("read " + form_, path(shard), errno);
    if (got == 0) refuse(shard, "has got shorter while it was read");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    begin += got;
  }
}

std::string ShardFiles::read_text(int shard, std::int64_t begin, std::int64_t end) const {
  std::string text(static_cast<std::size_t>(end - begin), '\0');
  read(shard, begin, std::as_writable_bytes(std::span(text)));
  return text;
}

void ShardFiles::scan(int shard,
                      const std::function<void(std::span<const std::byte>)>& take) const {
  constexpr std::int64_t kPieceBytes = std::int64_t{1} << 18;
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kPieceBytes, num_bytes(shard))));
  for (std::int64_t begin = 0; begin < num_bytes(shard);) {
    const std::int64_t bytes = std::min<std::int64_t>(std::ssize(buffer), num_bytes(shard) - begin);
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(bytes));
    read(shard, begin, piece);
    take(piece);
    begin += bytes;
  }
}

}  // namespace trireme::data
