#include "packs/speech/data/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/base/error_of.h"
#include "tests/base/test_folder.h"
#include "tests/packs/speech/data/audio_files.h"
#include "tests/packs/speech/data/libsndfile_leaks.h"

namespace trireme::speech {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kForms[] = {kWav16, kWavFloat, kFlac16, kFlac24, kVorbis, kOpus, kMp3};

std::string complaint_of(const std::string& encoded, const DecodeOptions& options = {}) {
  const Error error = error_of([&] { decode_audio(bytes_of(encoded), options); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
  return error.message();
}

TEST(DecodeAudio, ExactFormsGiveWhatWasWritten) {
  for (const int channels : {1, 2, 5}) {
    const auto frames = make_frames(20000, channels);
    for (const int format : {kWav16, kWavFloat, kFlac16, kFlac24}) {
      const std::string file =
          to_audio({.format = format, .sample_rate = 44100, .num_channels = channels}, frames);
      const Audio audio = decode_audio(bytes_of(file));
      ASSERT_EQ(audio.sample_rate, 44100);
      ASSERT_EQ(audio.num_channels, channels);
      ASSERT_EQ(audio.num_frames(), 20000);
      for (std::size_t i = 0; i < frames.size(); ++i) {
        const std::size_t c = i % static_cast<std::size_t>(channels);
        ASSERT_EQ(audio.samples[c * 20000 + i / static_cast<std::size_t>(channels)], frames[i]);
      }
    }
  }
}

TEST(DecodeAudio, FormsWithLossGiveTheSameSound) {
  const auto frames = make_frames(48000, 2);
  for (const int format : {kVorbis, kOpus, kMp3}) {
    const Audio audio = decode_audio(
        bytes_of(to_audio({.format = format, .sample_rate = 48000, .num_channels = 2}, frames)));
    ASSERT_EQ(audio.sample_rate, 48000);
    ASSERT_EQ(audio.num_frames(), 48000);
    double error = 0, power = 0;
    for (std::size_t i = 0; i < 48000; ++i) {
      for (std::size_t c = 0; c < 2; ++c) {
        const double wanted = frames[2 * i + c];
        error += std::pow(audio.samples[c * 48000 + i] - wanted, 2);
        power += wanted * wanted;
      }
    }
    EXPECT_LT(error, power * 0.01) << format;
  }
}

TEST(DecodeAudio, APartHasTheBitsOfTheWhole) {
  for (const int format : kForms) {
    const std::string file = to_audio({.format = format, .sample_rate = 48000, .num_channels = 2},
                                      make_frames(30000, 2));
    const Audio whole = decode_audio(bytes_of(file));
    for (const auto& [first, count] : {std::pair{0, 0},
                                       {0, 1},
                                       {1, 1999},
                                       {4095, 2},
                                       {4096, 20000},
                                       {17000, 13000},
                                       {29999, 1},
                                       {30000, 0}}) {
      const Audio part = decode_audio(bytes_of(file), {.frame_offset = first, .num_frames = count});
      ASSERT_EQ(part.num_frames(), count) << format;
      for (std::int64_t c = 0; c < 2; ++c) {
        const auto from = whole.samples.begin() + c * 30000 + first;
        ASSERT_TRUE(std::equal(from, from + count, part.samples.begin() + c * count))
            << format << " " << first;
      }
    }
    const Audio rest = decode_audio(bytes_of(file), {.frame_offset = 29000});
    EXPECT_EQ(rest.num_frames(), 1000);
  }
}

// Seeking in MP3 and Vorbis gives other samples, above all in long files and near their end.
TEST(DecodeAudio, APartOfALongFileHasTheBitsOfTheWhole) {
  constexpr int kSeconds = 12, kParts = 24, kCount = 2000;
  for (const int format : {kMp3, kVorbis, kOpus, kFlac16}) {
    for (const int rate : {16000, 48000}) {
      const int frames = kSeconds * rate;
      const std::string file =
          to_audio({.format = format, .sample_rate = rate}, make_frames(frames));
      const Audio whole = decode_audio(bytes_of(file));
      for (int i = 0; i < kParts; ++i) {
        // The last six in the last second.
        const int first = i < kParts - 6 ? i * (frames / kParts) + 37 * i
                                         : frames - kCount - (kParts - 1 - i) * rate / 8;
        const Audio part =
            decode_audio(bytes_of(file), {.frame_offset = first, .num_frames = kCount});
        ASSERT_TRUE(std::equal(part.samples.begin(), part.samples.end(),
                               whole.samples.begin() + first,
                               whole.samples.begin() + first + kCount))
            << format << " at " << rate << " Hz, from frame " << first;
      }
    }
  }
}

TEST(DecodeAudio, MonoIsTheMeanOfTheChannels) {
  const auto frames = make_frames(1000, 2);
  const std::string file = to_audio({.format = kFlac16, .num_channels = 2}, frames);
  const Audio audio = decode_audio(bytes_of(file), {.is_mono = true});
  ASSERT_EQ(audio.num_channels, 1);
  ASSERT_EQ(audio.num_frames(), 1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(audio.samples[i], (frames[2 * i] + frames[2 * i + 1]) / 2);
  }
}

TEST(DecodeAudio, CutOffAnywhereIsAnError) {
  for (const int format : kForms) {
    const std::string whole = to_audio({.format = format, .sample_rate = 48000, .num_channels = 2},
                                       make_frames(20000, 2));
    for (int percent = 1; percent < 100; percent += 3) {
      const std::size_t bytes = whole.size() * static_cast<std::size_t>(percent) / 100;
      complaint_of(whole.substr(0, bytes));
    }
    complaint_of(whole.substr(0, whole.size() - 1));
  }
  EXPECT_THAT(
      complaint_of(to_audio({.format = kWav16}, make_frames(100)).substr(0, 144)),
      AllOf(HasSubstr("WAV: expected 200 bytes of samples, got 100"), HasSubstr("cut off")));
  EXPECT_THAT(complaint_of(to_audio({}, make_frames(9000)).substr(0, 9000)),
              HasSubstr("FLAC: damaged or cut off"));
}

TEST(DecodeAudio, ForeignBytesAreNamed) {
  EXPECT_THAT(complaint_of(""),
              AllOf(HasSubstr("expected WAV, FLAC, MP3 or Ogg"), HasSubstr("got 0 bytes")));
  EXPECT_THAT(complaint_of("this is a text, no sound"), HasSubstr("24 bytes that begin as none"));
  EXPECT_THAT(complaint_of("fLaC"), HasSubstr("FLAC: its header is damaged"));
  EXPECT_THAT(complaint_of("RIFF....WAVE"), HasSubstr("WAV: there are no samples"));
  const std::string aiff = to_audio({.format = SF_FORMAT_AIFF | SF_FORMAT_PCM_16}, make_frames(9));
  EXPECT_THAT(complaint_of(aiff), HasSubstr("begin as none"));
  std::string wav = to_audio({.format = kWavFloat}, {0, std::numeric_limits<float>::infinity()});
  EXPECT_THAT(complaint_of(wav), HasSubstr("WAV: a sample is inf"));
}

TEST(DecodeAudio, ChangedBytesOfFlacAndOggAreSeen) {
  for (const int format : {kFlac16, kVorbis, kOpus}) {
    const std::string whole =
        to_audio({.format = format, .sample_rate = 48000}, make_frames(20000));
    const Audio expected = decode_audio(bytes_of(whole));
    for (int i = 0; i < 60; ++i) {
      std::string damaged = whole;
      char& byte = damaged[200 + (whole.size() - 201) * static_cast<std::size_t>(i) / 60];
      byte = static_cast<char>(byte ^ 0x10);
      try {
        EXPECT_EQ(decode_audio(bytes_of(damaged)).samples, expected.samples) << format << " " << i;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
      }
    }
  }
}

TEST(DecodeAudio, AStreamsWavMayLeaveItsLengthOpen) {
  const auto frames = make_frames(100);
  std::string file = to_audio({.format = kWav16}, frames);
  std::fill_n(file.begin() + 4, 4, '\xff');
  std::fill_n(file.begin() + 40, 4, '\xff');
  EXPECT_EQ(decode_audio(bytes_of(file)).samples, frames);
}

TEST(DecodeAudio, AStreamsFlacMayLeaveItsLengthOpen) {
  const auto frames = make_frames(20000);
  std::string file = to_audio({}, frames);
  file[21] = static_cast<char>(file[21] & 0xF0);  // 36 bits of STREAMINFO
  std::fill_n(file.begin() + 22, 4, '\0');
  EXPECT_EQ(decode_audio(bytes_of(file)).samples, frames);
  EXPECT_EQ(audio_info(bytes_of(file)).num_frames, 20000);
  const Audio part = decode_audio(bytes_of(file), {.frame_offset = 5000, .num_frames = 100});
  EXPECT_TRUE(std::equal(part.samples.begin(), part.samples.end(), frames.begin() + 5000));
  complaint_of(file.substr(0, file.size() / 2));
}

TEST(DecodeAudio, APartBeyondTheEndIsRefused) {
  const std::string file = to_audio({}, make_frames(100));
  for (const auto& [first, count] : {std::pair{0, 101}, {50, 51}, {101, 0}, {-1, 5}, {0, -1}}) {
    const Error error = error_of(
        [&] { decode_audio(bytes_of(file), {.frame_offset = first, .num_frames = count}); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("there are 100"));
  }
}

class AudioFileTest : public test::TestFolder {};

TEST_F(AudioFileTest, AFileIsReadAsItsBytesAreAndNamedInErrors) {
  for (const int format : kForms) {
    const std::string bytes =
        to_audio({.format = format, .sample_rate = 48000, .num_channels = 2}, make_frames(5000, 2));
    write("x", bytes);
    EXPECT_EQ(decode_audio(folder / "x").samples, decode_audio(bytes_of(bytes)).samples);
    const AudioInfo info = audio_info(folder / "x"), same = audio_info(bytes_of(bytes));
    EXPECT_EQ(info.num_frames, 5000);
    EXPECT_EQ(info.num_channels, 2);
    EXPECT_EQ(info.sample_rate, 48000);
    EXPECT_EQ(same.num_frames, 5000);
  }
  write("y.flac", "fLaC, or so");
  EXPECT_THAT(error_of([&] { decode_audio(folder / "y.flac"); }).message(),
              AllOf(HasSubstr("y.flac': FLAC: its header")));
  const Error missing = error_of([&] { audio_info(folder / "z.flac"); });
  EXPECT_EQ(missing.kind(), ErrorKind::kIo);
  EXPECT_THAT(missing.message(), HasSubstr("z.flac"));
  EXPECT_EQ(error_of([&] { audio_info(folder); }).kind(), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace trireme::speech
