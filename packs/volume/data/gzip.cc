#include "packs/volume/data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "trireme/error.h"

namespace trireme::volume {
namespace {

constexpr std::int64_t kMostRatio = 1032;  ///< Of deflate: 258 bytes from two bits.

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw Error(ErrorKind::kCorruptData, name + ": gzip: " + what);
}

/// Unpacks members one after the other.
class Unpacker {
 public:
  Unpacker(std::span<const std::byte> file, const std::string& name) : left_(file), name_(name) {
    constexpr int kGzip = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzip) != Z_OK) {
      throw Error(ErrorKind::kResourceExhausted, name + ": gzip: no memory to unpack");
    }
  }
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  /// As many bytes as there are, at most those of `out`.
  std::size_t read(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size() && !is_at_end()) done += step(out.subspan(done));
    return done;
  }

  /// The end of the member, whose checksum is compared there, if nothing but that is left of it.
  void finish_member() {
    std::array<std::byte, 1> more;
    while (!is_member_over_) {
      if (step(more) > 0) return;
    }
  }

 private:
  bool is_at_end() const { return is_member_over_ && left_.empty(); }

  std::size_t step(std::span<std::byte> out) {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    if (is_member_over_) inflateReset(&stream_);
    is_member_over_ = false;
    const auto given = static_cast<uInt>(std::min(left_.size(), kMost));
    const auto wanted = static_cast<uInt>(std::min(out.size(), kMost));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(left_.data()));
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = wanted;
    const int state = inflate(&stream_, Z_NO_FLUSH);
    left_ = left_.subspan(given - stream_.avail_in);
    if (state == Z_STREAM_END) {
      is_member_over_ = true;
      // Zeros, as tapes and some writers pad with them, are no member.
      if (std::ranges::all_of(left_, [](std::byte b) { return b == std::byte{0}; })) left_ = {};
    } else if (state == Z_BUF_ERROR) {
      refuse(name_, "the file is cut off");
    } else if (state != Z_OK) {
      refuse(name_, stream_.msg != nullptr ? stream_.msg : "the file is damaged");
    }
    return wanted - stream_.avail_out;
  }

  std::span<const std::byte> left_;
  const std::string& name_;
  z_stream stream_ = {};
  bool is_member_over_ = false;
};

}  // namespace

bool is_gzip(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0x1F} && file[1] == std::byte{0x8B};
}

std::vector<std::byte> unpack_gzip(std::span<const std::byte> file, std::int64_t size,
                                   const std::string& name) {
  if (size / kMostRatio > std::ssize(file)) {
    refuse(name, "its " + std::to_string(file.size()) + " bytes cannot hold the " +
                     std::to_string(size) + " that the header promises");
  }
  Unpacker unpacker(file, name);
  std::vector<std::byte> bytes(size);
  const std::size_t num_read = unpacker.read(bytes);
  if (num_read < bytes.size()) {
    refuse(name,
           "it holds " + std::to_string(num_read) + " bytes, expected " + std::to_string(size));
  }
  unpacker.finish_member();
  return bytes;
}

}  // namespace trireme::volume
