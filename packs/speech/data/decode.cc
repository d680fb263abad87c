#include "packs/speech/data/decode.h"

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "packs/speech/data/audio_bytes.h"
#include "trireme/error.h"

namespace trireme::speech {
namespace {

using internal::AudioBytes;
using internal::AudioForm;

constexpr std::int64_t kMostSamples = std::int64_t{1} << 29;
constexpr std::int64_t kBlockFrames = 1 << 14;

[[noreturn]] void refuse_audio(AudioForm form, const std::string& problem) {
  throw Error(ErrorKind::kCorruptData, std::string(to_text(form)) + ": " + problem);
}

/// What libsndfile reads from. Nothing may be thrown through it: what reading throws is kept.
struct Stream {
  const AudioBytes& bytes;
  std::int64_t at = 0;
  std::exception_ptr failure = nullptr;

  static Stream& of(void* stream) { return *static_cast<Stream*>(stream); }

  static sf_count_t length(void* stream) { return of(stream).bytes.size(); }

  static sf_count_t seek(sf_count_t offset, int whence, void* stream) {
    Stream& self = of(stream);
    const std::int64_t from = whence == SEEK_SET   ? 0
                              : whence == SEEK_CUR ? self.at
                                                   : length(stream);
    self.at = std::clamp<std::int64_t>(from + offset, 0, length(stream));
    return self.at;
  }

  static sf_count_t read(void* to, sf_count_t count, void* stream) {
    Stream& self = of(stream);
    try {
      const std::int64_t got =
          self.bytes.read(self.at, {static_cast<std::byte*>(to), static_cast<std::size_t>(count)});
      self.at += got;
      return got;
    } catch (...) {
      self.failure = std::current_exception();
      return 0;
    }
  }

  static sf_count_t tell(void* stream) { return of(stream).at; }
};

/// An open file of libsndfile.
class Reader {
 public:
  explicit Reader(const AudioBytes& bytes) : stream_{bytes}, form_(form_of(bytes)) {
    if (form_ == AudioForm::kWav) internal::check_wav_end(bytes);
    SF_VIRTUAL_IO io{Stream::length, Stream::seek, Stream::read, nullptr, Stream::tell};
    file_.reset(sf_open_virtual(&io, SFM_READ, &info_, &stream_));
    rethrow();
    // Why it could not be opened stands in a global variable, which other threads write too.
    if (!file_) {
      refuse_audio(form_, "its header is damaged, cut off or of an unknown kind (" +
                              std::to_string(bytes.size()) + " bytes)");
    }
    if (info_.samplerate < 1 || info_.channels < 1) refuse_audio(form_, "it has no channels");
    if (form_ == AudioForm::kOgg && !has_length()) refuse_audio(form_, "its end is cut off");
  }

  AudioForm form() const { return form_; }
  std::int64_t sample_rate() const { return info_.samplerate; }
  std::int64_t num_channels() const { return info_.channels; }

  /// A stream's FLAC may leave it open.
  bool has_length() const { return info_.frames != SF_COUNT_MAX; }
  std::int64_t num_frames() const { return info_.frames; }

  /// Before anything is read. In MP3 and Vorbis libsndfile's own seeking says that it is there and gives other samples,
  /// so these are decoded from the first frame on.
  void skip_to(std::int64_t frame) {
    if (frame == 0) return;
    if (form_ == AudioForm::kMp3 || form_ == AudioForm::kOgg) return decode_up_to(frame);
    const std::int64_t found = sf_seek(file_.get(), frame, SF_SEEK_SET);
    rethrow();
    if (found != frame) {
      refuse_audio(form_, "there is no frame " + std::to_string(frame) + ": it is damaged");
    }
  }

  /// How many were read: less than asked at the end. Interleaved.
  std::int64_t read(std::span<float> to) {
    const std::int64_t got =
        sf_readf_float(file_.get(), to.data(), std::ssize(to) / num_channels());
    rethrow();
    if (sf_error(file_.get()) != SF_ERR_NO_ERROR) {
      refuse_audio(form_, std::string("damaged or cut off: ") + sf_strerror(file_.get()));
    }
    return got;
  }

 private:
  void decode_up_to(std::int64_t frame) {
    std::vector<float> block(static_cast<std::size_t>(kBlockFrames * num_channels()));
    for (std::int64_t at = 0; at < frame;) {
      const std::int64_t count = std::min(kBlockFrames, frame - at);
      const std::int64_t got =
          read(std::span(block).first(static_cast<std::size_t>(count * num_channels())));
      if (got <= 0) {
        refuse_audio(form_, "there is no frame " + std::to_string(frame) + ": it is damaged");
      }
      at += got;
    }
  }

  void rethrow() const {
    if (stream_.failure) std::rethrow_exception(stream_.failure);
  }

  struct Close {
    void operator()(SNDFILE* file) const { sf_close(file); }
  };

  Stream stream_;  // where it is: libsndfile has its address
  AudioForm form_;
  SF_INFO info_{};
  std::unique_ptr<SNDFILE, Close> file_;
};

/// Frames [first, end).
struct Part {
  std::int64_t first, end;
};

std::string frames_text(std::int64_t count) { return std::to_string(count) + " frames"; }

/// The part that is asked for; of audio without a length its end may lie behind all.
Part part_of(const Reader& reader, const DecodeOptions& options) {
  const std::int64_t total = reader.num_frames(), first = options.frame_offset;
  const std::int64_t count = options.num_frames.value_or(std::max<std::int64_t>(total - first, 0));
  if (first < 0 || count < 0 || first > total || count > total - first) {
    throw Error(ErrorKind::kInvalidArgument, "asked for " + frames_text(count) + " from frame " +
                                                 std::to_string(first) + " on; there are " +
                                                 std::to_string(total));
  }
  if (reader.has_length() && count > kMostSamples / reader.num_channels()) {
    refuse_audio(reader.form(), frames_text(count) + " of " +
                                    std::to_string(reader.num_channels()) +
                                    " channels; at most 2^29 samples are decoded at once");
  }
  return {first, first + count};
}

/// Appends frames, or the mean of their channels.
void append(std::span<const float> frames, std::int64_t num_channels, std::vector<float>& to) {
  if (num_channels == 1) {
    to.insert(to.end(), frames.begin(), frames.end());
    return;
  }
  const auto divisor = static_cast<float>(num_channels);
  for (std::size_t i = 0; i < frames.size(); i += static_cast<std::size_t>(num_channels)) {
    float sum = frames[i];
    for (std::int64_t c = 1; c < num_channels; ++c) sum += frames[i + static_cast<std::size_t>(c)];
    to.push_back(sum / divisor);
  }
}

void check_finite(AudioForm form, std::span<const float> samples) {
  const auto bad = std::ranges::find_if(samples, [](float x) { return !std::isfinite(x); });
  if (bad != samples.end()) refuse_audio(form, "a sample is " + std::to_string(*bad));
}

/// [frames, channels] to [channels, frames].
std::vector<float> transposed(const std::vector<float>& frames, std::int64_t num_channels) {
  std::vector<float> samples(frames.size());
  const auto channels = static_cast<std::size_t>(num_channels);
  const std::size_t count = frames.size() / channels;
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < count; ++i) samples[c * count + i] = frames[i * channels + c];
  }
  return samples;
}

Audio decode(const AudioBytes& bytes, const DecodeOptions& options) {
  Reader reader(bytes);
  const Part part = part_of(reader, options);
  const std::int64_t channels = reader.num_channels();
  reader.skip_to(part.first);
  std::vector<float> block(static_cast<std::size_t>(kBlockFrames * channels)), samples;
  std::int64_t at = part.first;
  while (at < part.end) {
    const auto space = static_cast<std::size_t>(std::min(kBlockFrames, part.end - at) * channels);
    const std::int64_t got = reader.read(std::span(block).first(space));
    if (got <= 0) break;
    const auto frames = std::span(block).first(static_cast<std::size_t>(got * channels));
    check_finite(reader.form(), frames);
    append(frames, options.is_mono ? channels : 1, samples);
    at += got;
    if (std::ssize(samples) > kMostSamples) refuse_audio(reader.form(), "more than 2^29 samples");
  }
  const bool may_end = !reader.has_length() && !options.num_frames;
  if (at < part.end && !may_end) {
    refuse_audio(reader.form(), "expected " + frames_text(part.end - part.first) + ", got " +
                                    std::to_string(at - part.first) + ": it is damaged or cut off");
  }
  if (options.is_mono || channels == 1) return {reader.sample_rate(), 1, std::move(samples)};
  return {reader.sample_rate(), channels, transposed(samples, channels)};
}

AudioInfo info_of(const AudioBytes& bytes) {
  const Reader reader(bytes);
  if (reader.has_length()) {
    return {reader.sample_rate(), reader.num_channels(), reader.num_frames()};
  }
  const Audio audio = decode(bytes, {});
  return {audio.sample_rate, audio.num_channels, audio.num_frames()};
}

/// What `work` returns; its errors name the file.
template <typename Work>
auto of_file(const std::filesystem::path& path, Work work) {
  const AudioBytes bytes(path);
  try {
    return work(bytes);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kIo) throw;
    throw Error(error.kind(), "'" + path.string() + "': " + error.message());
  }
}

}  // namespace

Audio decode_audio(std::span<const std::byte> encoded, const DecodeOptions& options) {
  return decode(AudioBytes(encoded), options);
}

Audio decode_audio(const std::filesystem::path& path, const DecodeOptions& options) {
  return of_file(path, [&](const AudioBytes& bytes) { return decode(bytes, options); });
}

AudioInfo audio_info(std::span<const std::byte> encoded) { return info_of(AudioBytes(encoded)); }

AudioInfo audio_info(const std::filesystem::path& path) { return of_file(path, info_of); }

}  // namespace trireme::speech
