#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "trireme/base/descriptor.h"

namespace trireme::speech::internal {

/// Encoded audio, in memory or in a file, at any place. Caller-synchronised.
class AudioBytes {
 public:
  explicit AudioBytes(std::span<const std::byte> bytes);
  /// kIo, naming the file, where it cannot be opened.
  explicit AudioBytes(const std::filesystem::path& path);

  std::int64_t size() const { return size_; }

  /// How many of `to` were read: less than all at the end. kIo, naming the file.
  std::int64_t read(std::int64_t offset, std::span<std::byte> to) const;

 private:
  std::span<const std::byte> bytes_;
  std::string path_;
  Descriptor file_;
  std::int64_t size_ = 0;
};

/// By the first bytes.
enum class AudioForm : std::uint8_t { kWav, kFlac, kMp3, kOgg };

const char* to_text(AudioForm form);

/// kCorruptData, saying what was expected and how many bytes came, for others.
AudioForm form_of(const AudioBytes& bytes);

/// kCorruptData for a WAV whose samples are said to go on beyond its end, which libsndfile takes for a shorter one. Any
/// length is right where the header leaves it open (0xFFFFFFFF, as of a stream).
void check_wav_end(const AudioBytes& bytes);

}  // namespace trireme::speech::internal
