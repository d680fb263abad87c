#include "trireme/data/unpack.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string>
#include <vector>

#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;
using Take = std::function<void(std::span<const std::byte>)>;

constexpr std::size_t kPieceBytes = std::size_t{1} << 19;

/// What both formats share: where the bytes go, and how far the file has been read.
struct Unpacking {
  const fs::path& path;
  const Take& take;
  std::int64_t num_read = 0;
  std::vector<std::byte> out = std::vector<std::byte>(kPieceBytes);

  void give(std::size_t bytes) const { take(std::span(out).first(bytes)); }

  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error(ErrorKind::kCorruptData,
                "'" + path.string() + "' " + problem + ", by byte " + std::to_string(num_read));
  }

  [[noreturn]] void refuse_cut_off() const {
    refuse("is cut off: what is compressed in it goes on behind its end");
  }
};

/// Members of gzip, one after the other. zlib's own gzread would take one with a damaged head for the end.
class Gunzip {
 public:
  explicit Gunzip(Unpacking& state) : state_(state) {
    constexpr int kGzip = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzip) != Z_OK) {
      throw Error(ErrorKind::kResourceExhausted,
                  "no memory to unpack '" + state.path.string() + "'");
    }
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  void add(std::span<const std::byte> in) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    do {
      if (is_member_over_ && !begin_member()) return;
      stream_.next_out = reinterpret_cast<Bytef*>(state_.out.data());
      stream_.avail_out = static_cast<uInt>(state_.out.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        state_.refuse(std::string("is damaged, or no gzip file: ") +
                      (stream_.msg != nullptr ? stream_.msg : "no reason is given"));
      }
      is_member_over_ = result == Z_STREAM_END;
      state_.give(state_.out.size() - stream_.avail_out);
    } while (stream_.avail_in > 0 || stream_.avail_out == 0);
  }

  void finish() const {
    if (!is_member_over_) state_.refuse_cut_off();
  }

 private:
  /// False where nothing is left but zeros, with which some writers fill up a block.
  bool begin_member() {
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
    if (stream_.avail_in == 0) return false;
    inflateReset(&stream_);
    is_member_over_ = false;
    return true;
  }

  Unpacking& state_;
  z_stream stream_ = {};
  bool is_member_over_ = false;
};

/// Frames of zstd, one after the other.
class Unzstd {
 public:
  explicit Unzstd(Unpacking& state) : state_(state), stream_(ZSTD_createDStream()) {
    if (!stream_) {
      throw Error(ErrorKind::kResourceExhausted,
                  "no memory to unpack '" + state.path.string() + "'");
    }
  }
  ~Unzstd() { ZSTD_freeDStream(stream_); }
  Unzstd(const Unzstd&) = delete;
  Unzstd& operator=(const Unzstd&) = delete;

  void add(std::span<const std::byte> bytes) {
    ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
    ZSTD_outBuffer out = {};
    do {
      out = {state_.out.data(), state_.out.size(), 0};
      left_ = ZSTD_decompressStream(stream_, &out, &in);
      if (ZSTD_isError(left_) != 0U) {
        state_.refuse(std::string("is damaged, or no zstd file: ") + ZSTD_getErrorName(left_));
      }
      state_.give(out.pos);
      // At the end of a frame nothing is held back; asking again would begin another.
    } while (in.pos < in.size || (out.pos == out.size && left_ != 0));
  }

  void finish() const {
    if (left_ != 0) state_.refuse_cut_off();
  }

 private:
  Unpacking& state_;
  ZSTD_DStream* stream_;
  std::size_t left_ = 1;  // of the frame, as a hint
};

template <typename Format>
void unpack_all(const Descriptor& file, Unpacking& state) {
  Format format(state);
  std::vector<std::byte> in(kPieceBytes);
  while (true) {
    const ssize_t got = ::read(file.number(), in.data(), in.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system_error("read", state.path, errno);
    if (got == 0) break;
    state.num_read += got;
    format.add(std::span(in).first(static_cast<std::size_t>(got)));
  }
  format.finish();
}

}  // namespace

std::optional<Packing> packing_of(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  if (ending == ".gz") return Packing::kGzip;
  if (ending == ".zst" || ending == ".zstd") return Packing::kZstd;
  return std::nullopt;
}

fs::path without_packing(const fs::path& path) {
  return packing_of(path) ? fs::path(path).replace_extension() : path;
}

void unpack(const Descriptor& file, const fs::path& path, Packing packing, const Take& take) {
  Unpacking state{.path = path, .take = take};
  if (packing == Packing::kGzip) {
    unpack_all<Gunzip>(file, state);
  } else {
    unpack_all<Unzstd>(file, state);
  }
}

}  // namespace trireme::data
