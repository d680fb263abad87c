#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace trireme::speech {

/// What an audio file says of itself. A frame is a sample of each channel, as libsndfile and torchaudio call it.
struct AudioInfo {
  std::int64_t sample_rate = 0;  ///< In Hz.
  std::int64_t num_channels = 0;
  std::int64_t num_frames = 0;
};

/// Decoded audio: samples[channel * num_frames() + frame], of files of whole numbers from -1 to 1.
struct Audio {
  std::int64_t sample_rate = 0;
  std::int64_t num_channels = 0;
  std::vector<float> samples;

  std::int64_t num_frames() const {
    return num_channels == 0 ? 0 : std::ssize(samples) / num_channels;
  }
};

/// Which part, as torchaudio.load calls it. Changes results.
struct DecodeOptions {
  std::int64_t frame_offset = 0;
  std::optional<std::int64_t> num_frames;  ///< None: all from the offset on.
  bool is_mono = false;                    ///< The mean of all channels, as one.
};

/// Decodes WAV, FLAC, MP3 or Ogg (Vorbis, Opus). Which it is, the first bytes say. A part has the samples of the whole,
/// bit by bit.
///
/// Cost     in WAV and FLAC what is in front of a part is skipped; MP3 and Ogg are decoded from the first frame on, as
///          seeking gives other samples there: many parts of a long file cost as many times.
///
/// Errors   kCorruptData for bytes that are none of these, are cut off or damaged, for samples that are not finite, for
///          more than 2^29 samples at once; kInvalidArgument for a part that is not within. What is not seen: damage of
///          samples in WAV and MP3, which have no checksums; a missing end of an MP3 that does not say its length
///          (without a Xing header).
/// Order    WAV and FLAC have the same bits anywhere. MP3 and Ogg are decoded by what a processor has: on another kind
///          of processor last bits may differ.
/// Threads  any.
Audio decode_audio(std::span<const std::byte> encoded, const DecodeOptions& options = {});

/// The same of a file, of which no more is read than is needed. Errors name the file; kIo too.
Audio decode_audio(const std::filesystem::path& path, const DecodeOptions& options = {});

/// Reads headers; of an MP3 all of it, and of a FLAC that does not say its length.
AudioInfo audio_info(std::span<const std::byte> encoded);
AudioInfo audio_info(const std::filesystem::path& path);

}  // namespace trireme::speech
