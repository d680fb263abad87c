#include "packs/speech/data/utterance_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "packs/speech/data/resample.h"
#include "tests/base/error_of.h"
#include "tests/base/test_folder.h"
#include "tests/data/tar_file.h"
#include "tests/packs/speech/data/audio_files.h"
#include "trireme/data/padding.h"
#include "trireme/data/parallel_read.h"

namespace trireme::speech {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct SpeechSample {
  std::vector<float> features;
  std::int32_t num_frames = -1;
  std::vector<std::int32_t> tokens;
  std::int32_t num_tokens = -1;
  bool operator==(const SpeechSample&) const = default;
};

SpeechSample read_speech(const data::Source& source, data::Sample sample) {
  const data::Lengths lengths = source.lengths_of(sample);
  SpeechSample made;
  made.features.resize(static_cast<std::size_t>(source.fields()[0].num_bytes(lengths)) / 4);
  made.tokens.resize(static_cast<std::size_t>(lengths.at("tokens")));
  const std::span<std::byte> places[] = {std::as_writable_bytes(std::span(made.features)),
                                         std::as_writable_bytes(std::span(&made.num_frames, 1)),
                                         std::as_writable_bytes(std::span(made.tokens)),
                                         std::as_writable_bytes(std::span(&made.num_tokens, 1))};
  source.read(sample, places);
  return made;
}

class UtteranceSourceTest : public test::TestFolder {
 protected:
  /// Twelve utterances, 0.5 to 1.6 seconds, of 1 to 12 letters; some of 8 kHz, some in stereo.
  Utterances utterances() const {
    std::vector<data::TarMember> members;
    for (int i = 0; i < 12; ++i) {
      const int rate = i % 3 == 0 ? 8000 : 16000, channels = 1 + i % 2;
      const std::int64_t frames = rate * (5 + i) / 10;
      const std::string stem = "u" + std::to_string(100 + i);
      const auto sound = make_frames(frames, channels, static_cast<std::uint32_t>(i));
      members.push_back(
          {stem + ".flac", to_audio({.sample_rate = rate, .num_channels = channels}, sound)});
      members.push_back({stem + ".txt", std::string("ABCABCABCABC").substr(0, 1 + i)});
    }
    data::write_tar(folder / "all.tar", members);
    return open_utterances({folder / "all.tar"});
  }

  static UtteranceOptions training(std::uint64_t seed = 1) {
    return {.masks = SpecAugmentOptions{}, .stacking = {3, 3}, .seed = seed};
  }

  const TextEncoder letters = character_encoder("ABC");
};

TEST_F(UtteranceSourceTest, ASampleIsEachStepAfterTheOther) {
  const Utterances all = utterances();
  const UtteranceSource source(all, letters, {.stacking = {3, 3}});
  const LogMel log_mel({.n_fft = 512, .win_length = 320, .hop_length = 160, .n_mels = 80});
  for (const std::int64_t index : {0, 1, 2}) {
    Audio audio = all.decode(index);
    if (index == 0) audio.samples = resample(audio.samples, {8000, 16000});
    const FrameShape shape{log_mel.num_frames(std::ssize(audio.samples)), 80};
    std::vector<float> features(static_cast<std::size_t>(shape.num_frames * 80));
    log_mel(audio.samples, features);
    normalize_per_feature(shape, features.data());
    const SpeechSample sample = read_speech(source, {index, 3});
    EXPECT_EQ(sample.num_frames, (shape.num_frames + 2) / 3);
    features.resize(static_cast<std::size_t>(sample.num_frames) * 240);  // 3 stacked, 3 skipped
    EXPECT_EQ(sample.features, features);
    EXPECT_EQ(sample.num_tokens, index + 1);
  }
  EXPECT_THAT(read_speech(source, {4}).tokens, ElementsAre(1, 2, 3, 1, 2));
}

TEST_F(UtteranceSourceTest, ASampleIsAFunctionOfSeedIndexAndVisit) {
  const Utterances all = utterances();
  const UtteranceSource source(all, letters, training()), other(all, letters, training(2));
  const SpeechSample first = read_speech(source, {5, 1});
  read_speech(source, {6, 1});
  EXPECT_EQ(read_speech(source, {5, 1}), first);
  EXPECT_NE(read_speech(source, {5, 2}).features, first.features);
  EXPECT_NE(read_speech(other, {5, 1}).features, first.features);
  EXPECT_EQ(read_speech(other, {5, 1}).tokens, first.tokens);
  const UtteranceSource evaluation(all, letters, {.stacking = {3, 3}});
  EXPECT_EQ(read_speech(evaluation, {5, 1}), read_speech(evaluation, {5, 2}));
  // Masks are 0 and leave the rest as it is.
  const auto plain = read_speech(evaluation, {5, 1}).features;
  std::size_t masked = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (first.features[i] == plain[i]) continue;
    ASSERT_EQ(first.features[i], 0);
    ++masked;
  }
  EXPECT_GT(masked, plain.size() / 50);
}

TEST_F(UtteranceSourceTest, ThreadsDoNotChangeSamples) {
  const UtteranceSource source(utterances(), letters, training());
  const auto read_all = [&](int num_threads) {
    std::vector<SpeechSample> samples(36);
    const auto one = [&](std::int64_t i) {
      samples[static_cast<std::size_t>(i)] = read_speech(source, {i * 7 % 12, i / 12});
    };
    data::read_each(std::ssize(samples), one, kernels::on_threads(num_threads));
    return samples;
  };
  const auto expected = read_all(1);
  for (const int threads : {2, 5}) EXPECT_EQ(read_all(threads), expected) << threads;
}

TEST_F(UtteranceSourceTest, LengthsDivideTheUtterances) {
  const UtteranceSource one(utterances(), letters, {});
  EXPECT_THAT(one.padded_lengths(), ElementsAre(data::Lengths{{"frames", 161}, {"tokens", 12}}));
  const UtteranceSource source(utterances(), letters, {.num_lengths = 3});
  EXPECT_THAT(source.padded_lengths(), ElementsAre(data::Lengths{{"frames", 81}, {"tokens", 4}},
                                                   data::Lengths{{"frames", 121}, {"tokens", 8}},
                                                   data::Lengths{{"frames", 161}, {"tokens", 12}}));
  data::check_padding(source);
  for (std::int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(source.lengths_of({i}), (data::Lengths{{"frames", 51 + 10 * i}, {"tokens", i + 1}}));
    EXPECT_EQ(data::padded_index(source.padded_lengths(), source.lengths_of({i})), i / 4);
  }
  data::check_padding(UtteranceSource(utterances(), letters, {.num_lengths = 64}));
}

TEST_F(UtteranceSourceTest, LongAndTinyUtterancesAreLeftOut) {
  data::write_tar(folder / "all.tar", {{"0.flac", to_audio({}, make_frames(256))},
                                       {"0.txt", "A"},
                                       {"1.flac", to_audio({}, make_frames(16001))},
                                       {"1.txt", "B"},
                                       {"2.flac", to_audio({}, make_frames(257))},
                                       {"2.txt", "C"},
                                       {"3.flac", to_audio({}, make_frames(16000))},
                                       {"3.txt", "AB"}});
  const UtteranceSource source(open_utterances({folder / "all.tar"}), letters, {.max_seconds = 1});
  EXPECT_EQ(source.num_left_out(), 2);
  ASSERT_EQ(source.num_samples(), 2);
  EXPECT_THAT(read_speech(source, {0}).tokens, ElementsAre(3));
  EXPECT_THAT(read_speech(source, {1}).tokens, ElementsAre(1, 2));
}

TEST_F(UtteranceSourceTest, ADamagedOneIsNamedAndCanBeSkipped) {
  data::write_tar(folder / "all.tar", {{"0.flac", to_audio({}, make_frames(4000))},
                                       {"0.txt", "A"},
                                       {"1.flac", "no sound"},
                                       {"1.txt", "B"},
                                       {"2.flac", to_audio({}, make_frames(9000)).substr(0, 5000)},
                                       {"2.txt", "C"},
                                       {"3.flac", to_audio({}, make_frames(4000, 1, 7))},
                                       {"3.txt", "C"}});
  const auto source = std::make_shared<const UtteranceSource>(open_utterances({folder / "all.tar"}),
                                                              letters, UtteranceOptions{});
  ASSERT_EQ(source->num_samples(), 4);
  EXPECT_THAT(error_of([&] { source->lengths_of({1}); }).message(),
              AllOf(HasSubstr("record '1' of '"), HasSubstr("begin as none")));
  EXPECT_THAT(error_of([&] { read_speech(*source, {2}); }).message(),
              AllOf(HasSubstr("record '2' of '"), HasSubstr("FLAC: damaged or cut off")));
  // What headers tell not is known where all was decoded.
  const auto checked = std::make_shared<const UtteranceSource>(
      open_utterances({folder / "all.tar"}, {.is_checked = true}), letters, UtteranceOptions{});
  EXPECT_EQ(error_of([&] { checked->lengths_of({2}); }).kind(), ErrorKind::kCorruptData);
  const auto safe = data::skip_damaged(checked, {.max_skipped = 2});
  for (const std::int64_t index : {1, 2, 3}) {
    EXPECT_EQ(read_speech(*safe, {index}), read_speech(*source, {3}));
  }
}

TEST_F(UtteranceSourceTest, OptionsAndTextsThatDoNotFitAreRefused) {
  const Utterances all = utterances();
  for (const UtteranceOptions& options :
       {UtteranceOptions{.features = {.n_mels = -1}},
        UtteranceOptions{.masks = SpecAugmentOptions{.p = 2}}, UtteranceOptions{.stacking = {0, 1}},
        UtteranceOptions{.stacking = {1, 65}}, UtteranceOptions{.max_seconds = 0},
        UtteranceOptions{.max_seconds = 0.1}, UtteranceOptions{.num_lengths = 0}}) {
    const Error error = error_of([&] { const UtteranceSource source(all, letters, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.what();
  }
  const Error error = error_of([&] { UtteranceSource(all, character_encoder("AB"), {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("record 'u102' of '"), HasSubstr("character 'C'")));
  const UtteranceSource source(all, letters, {});
  EXPECT_EQ(error_of([&] { source.lengths_of({12}); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { source.read({0}, {}); }).kind(), ErrorKind::kInvalidArgument);
}

TEST_F(UtteranceSourceTest, TheIdentityIsOfAllThatChangesSamples) {
  const Utterances all = utterances();
  std::set<std::string> identities;
  std::vector<UtteranceOptions> every = {{}, training(), training(2)};
  every.push_back({.features = {.n_fft = 512, .win_length = 320, .hop_length = 160, .n_mels = 40}});
  every.push_back({.is_normalized = false});
  every.push_back({.stacking = {3, 1}});
  every.push_back({.num_lengths = 2});
  for (const UtteranceOptions& options : every) {
    identities.insert(UtteranceSource(all, letters, options).identity());
  }
  identities.insert(UtteranceSource(all, character_encoder("CBA"), {}).identity());
  EXPECT_EQ(identities.size(), every.size() + 1);
}

TEST(CharacterEncoder, NumbersCharactersFromOne) {
  const TextEncoder encoder = character_encoder("a\xC3\xA9 \xE2\x82\xAC");
  EXPECT_THAT(encoder.encode("\xE2\x82\xAC a\xC3\xA9"), ElementsAre(4, 3, 1, 2));
  EXPECT_THAT(encoder.encode(""), ElementsAre());
  EXPECT_THAT(error_of([&] { encoder.encode("b"); }).message(), HasSubstr("'b'"));
  EXPECT_THAT(error_of([&] { encoder.encode("\xC3"); }).message(), HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of([&] { character_encoder("aba"); }).message(),
              HasSubstr("'a' is there twice"));
  EXPECT_EQ(error_of([&] { character_encoder(""); }).kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(error_of([&] { character_encoder("\xFF"); }).kind(), ErrorKind::kInvalidArgument);
}

/// Every third utterance of a split, and how long all of them are by the file beside them.
void expect_public_utterances(const fs::path& table, const std::string& alphabet,
                              std::int64_t count, std::int64_t rate, double minutes) {
  const Utterances all = open_utterances({table});
  ASSERT_EQ(all.size(), count);
  double seconds = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(all.info(i).sample_rate, rate);
    seconds += static_cast<double>(all.info(i).num_frames) / static_cast<double>(rate);
  }
  EXPECT_NEAR(seconds / 60, minutes, 0.06);
  const UtteranceSource source(
      all, character_encoder(alphabet),
      {.masks = SpecAugmentOptions{}, .stacking = {3, 3}, .num_lengths = 6});
  EXPECT_EQ(source.num_samples(), count);
  data::check_padding(source);
  for (std::int64_t i = 0; i < count; i += 3) {
    const SpeechSample sample = read_speech(source, {i});
    ASSERT_EQ(std::ssize(sample.tokens), std::ssize(all.text(i)));
    for (const float value : sample.features) ASSERT_LT(std::abs(value), 12) << i;
  }
}

TEST(PublicSpeech, LibrispeechUtterancesAreSamples) {
  const fs::path folder = "../shared/data/asr-librispeech-short";
  if (!fs::exists(folder)) GTEST_SKIP() << "no ../shared/data/asr-librispeech-short";
  expect_public_utterances(folder / "dev.tsv", "ABCDEFGHIJKLMNOPQRSTUVWXYZ' ", 134, 16000, 6.2);
}

TEST(PublicSpeech, SpokenDigitsAreSamples) {
  const fs::path folder = "../shared/data/asr-fsdd";
  if (!fs::exists(folder)) GTEST_SKIP() << "no ../shared/data/asr-fsdd";
  expect_public_utterances(folder / "dev.tsv", "efghinorstuvwxz", 300, 8000, 2.2);
}

}  // namespace
}  // namespace trireme::speech
