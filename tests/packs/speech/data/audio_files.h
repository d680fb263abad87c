#pragma once

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace trireme::speech {

/// What is written: as soundfile and libsndfile name it, with mono, 16 kHz sound as the default.
struct WrittenForm {
  int format = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
  int sample_rate = 16000;
  int num_channels = 1;
};

inline constexpr int kWav16 = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
inline constexpr int kWavFloat = SF_FORMAT_WAV | SF_FORMAT_FLOAT;
inline constexpr int kFlac16 = SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
inline constexpr int kFlac24 = SF_FORMAT_FLAC | SF_FORMAT_PCM_24;
inline constexpr int kVorbis = SF_FORMAT_OGG | SF_FORMAT_VORBIS;
inline constexpr int kOpus = SF_FORMAT_OGG | SF_FORMAT_OPUS;
inline constexpr int kMp3 = SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;

/// A file in memory that libsndfile writes.
struct WrittenFile {
  std::string bytes;
  sf_count_t at = 0;

  static WrittenFile& of(void* file) { return *static_cast<WrittenFile*>(file); }
  static sf_count_t length(void* file) { return static_cast<sf_count_t>(of(file).bytes.size()); }
  static sf_count_t seek(sf_count_t offset, int whence, void* file) {
    return of(file).at = offset + (whence == SEEK_SET   ? 0
                                   : whence == SEEK_CUR ? of(file).at
                                                        : length(file));
  }
  static sf_count_t read(void* to, sf_count_t count, void* file) {
    WrittenFile& self = of(file);
    count = std::clamp<sf_count_t>(length(file) - self.at, 0, count);
    std::memcpy(to, self.bytes.data() + self.at, static_cast<std::size_t>(count));
    self.at += count;
    return count;
  }
  static sf_count_t write(const void* from, sf_count_t count, void* file) {
    WrittenFile& self = of(file);
    self.bytes.resize(static_cast<std::size_t>(std::max(length(file), self.at + count)));
    std::memcpy(self.bytes.data() + self.at, from, static_cast<std::size_t>(count));
    self.at += count;
    return count;
  }
  static sf_count_t tell(void* file) { return of(file).at; }
};

/// frames   interleaved.
inline std::string to_audio(const WrittenForm& form, const std::vector<float>& frames) {
  WrittenFile file;
  SF_VIRTUAL_IO io{WrittenFile::length, WrittenFile::seek, WrittenFile::read, WrittenFile::write,
                   WrittenFile::tell};
  SF_INFO info{};
  info.samplerate = form.sample_rate;
  info.channels = form.num_channels;
  info.format = form.format;
  SNDFILE* writer = sf_open_virtual(&io, SFM_WRITE, &info, &file);
  sf_writef_float(writer, frames.data(),
                  static_cast<sf_count_t>(frames.size()) / form.num_channels);
  sf_close(writer);
  return file.bytes;
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// A tone for each channel, some noise, in 16 bits: what 16 bits keep exactly.
inline std::vector<float> make_frames(std::int64_t count, int num_channels = 1,
                                      std::uint32_t seed = 1) {
  std::vector<float> frames;
  std::uint32_t noise = seed;
  for (std::int64_t i = 0; i < count; ++i) {
    for (int c = 0; c < num_channels; ++c) {
      noise = noise * 1664525U + 1013904223U;
      const double tone = std::sin(0.01 * static_cast<double>((c + 1) * i + seed % 97));
      const double level = 8000 * tone + static_cast<double>(noise >> 22U) - 512;
      frames.push_back(static_cast<float>(std::lround(level)) / 32768.0F);
    }
  }
  return frames;
}

}  // namespace trireme::speech
