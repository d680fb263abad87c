#include "packs/speech/data/audio_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::speech::internal {
namespace {

using Head = std::array<char, 12>;

constexpr std::int64_t kChunkHead = 8;  // of RIFF: a name, and how many bytes follow

std::string_view text_at(const Head& head, std::size_t at, std::size_t count) {
  return std::string_view(head.data(), head.size()).substr(at, count);
}

/// As many bytes as there are, then 0.
Head read_head(const AudioBytes& bytes, std::int64_t offset) {
  Head head{};
  bytes.read(offset, std::as_writable_bytes(std::span(head)));
  return head;
}

std::int64_t chunk_size(const Head& head) {
  std::uint32_t size = 0;
  for (int i = 3; i >= 0; --i) size = size << 8U | static_cast<unsigned char>(head[4 + i]);
  return size;
}

/// Eleven bits of an MPEG frame's beginning, and a layer.
bool is_mpeg_frame(const Head& head) {
  const auto first = static_cast<unsigned char>(head[0]);
  const auto second = static_cast<unsigned char>(head[1]);
  return first == 0xFF && (second & 0xE0U) == 0xE0 && (second & 0x06U) != 0;
}

}  // namespace

AudioBytes::AudioBytes(std::span<const std::byte> bytes)
    : bytes_(bytes), size_(std::ssize(bytes)) {}

AudioBytes::AudioBytes(const std::filesystem::path& path)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status{};
  if (!file_.is_open()) throw_system_error("open audio", path, errno);
  if (::fstat(file_.number(), &status) != 0) throw_system_error("open audio", path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kInvalidArgument, "'" + path_ + "' is no file");
  }
  size_ = status.st_size;
}

std::int64_t AudioBytes::read(std::int64_t offset, std::span<std::byte> to) const {
  const std::int64_t count = std::clamp<std::int64_t>(size_ - offset, 0, std::ssize(to));
  if (!file_.is_open()) {
    if (count > 0) std::memcpy(to.data(), bytes_.data() + offset, static_cast<std::size_t>(count));
    return count;
  }
  std::int64_t done = 0;
  while (done < count) {
    const ssize_t got = ::pread(file_.number(), to.data() + done,
                                static_cast<std::size_t>(count - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system_error("read audio", path_, errno);
    if (got == 0) break;
    done += got;
  }
  return done;
}

const char* to_text(AudioForm form) {
  switch (form) {
    case AudioForm::kWav:
      return "WAV";
    case AudioForm::kFlac:
      return "FLAC";
    case AudioForm::kMp3:
      return "MP3";
    case AudioForm::kOgg:
      return "Ogg";
  }
  return "";
}

AudioForm form_of(const AudioBytes& bytes) {
  const Head head = read_head(bytes, 0);
  if (text_at(head, 0, 4) == "RIFF" && text_at(head, 8, 4) == "WAVE") return AudioForm::kWav;
  if (text_at(head, 0, 4) == "fLaC") return AudioForm::kFlac;
  if (text_at(head, 0, 4) == "OggS") return AudioForm::kOgg;
  if (text_at(head, 0, 3) == "ID3" || is_mpeg_frame(head)) return AudioForm::kMp3;
  throw Error(ErrorKind::kCorruptData, "expected WAV, FLAC, MP3 or Ogg, got " +
                                           std::to_string(bytes.size()) +
                                           " bytes that begin as none of them");
}

void check_wav_end(const AudioBytes& bytes) {
  constexpr std::int64_t kOpen = 0xFFFFFFFF;
  for (std::int64_t at = sizeof(Head); at + kChunkHead <= bytes.size();) {
    const Head head = read_head(bytes, at);
    const std::int64_t size = chunk_size(head), left = bytes.size() - at - kChunkHead;
    if (text_at(head, 0, 4) == "data") {
      if (size == kOpen || size <= left) return;
      throw Error(ErrorKind::kCorruptData, "WAV: expected " + std::to_string(size) +
                                               " bytes of samples, got " + std::to_string(left) +
                                               ": it is cut off");
    }
    at += kChunkHead + size + size % 2;
  }
  throw Error(ErrorKind::kCorruptData, "WAV: there are no samples in its " +
                                           std::to_string(bytes.size()) + " bytes: it is cut off");
}

}  // namespace trireme::speech::internal
