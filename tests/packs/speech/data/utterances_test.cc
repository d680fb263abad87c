#include "packs/speech/data/utterances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_of.h"
#include "tests/base/test_folder.h"
#include "tests/data/tar_file.h"
#include "tests/packs/speech/data/audio_files.h"

namespace trireme::speech {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

class UtterancesTest : public test::TestFolder {
 protected:
  /// As many frames as no other.
  static std::string sound(std::int64_t frames, int format = kFlac16) {
    return to_audio({.format = format}, make_frames(frames));
  }

  std::string complaint(const UtteranceFileOptions& options = {}) const {
    return error_of([&] { open_utterances({folder}, options); }).message();
  }
};

TEST_F(UtterancesTest, ShardsManifestsAndFoldersGiveTheSame) {
  write("libri/84/121/84-121.trans.txt", "84-121-0 GO DO YOU HEAR\n84-121-1 BUT\n");
  write("libri/84/121/84-121-0.flac", sound(1000));
  write("libri/84/121/84-121-1.flac", sound(1100));
  write("libri/85/7/85-7.trans.txt", "85-7-0 I\r\n\n85-7-1\n");
  write("libri/85/7/85-7-0.wav", sound(1200, kWav16));
  write("libri/85/7/85-7-1.flac", sound(1300));
  const std::vector<std::string> texts = {"GO DO YOU HEAR", "BUT", "I", ""};
  const std::vector<std::string> files = {"84/121/84-121-0.flac", "84/121/84-121-1.flac",
                                          "85/7/85-7-0.wav", "85/7/85-7-1.flac"};
  std::string tsv = "path\tseconds\ttext\n", lines;
  std::vector<data::TarMember> members;
  for (std::size_t i = 0; i < 4; ++i) {
    tsv += files[i] + "\t1.5\t" + texts[i] + "\n";
    lines += R"({"audio_filepath": ")" + files[i] + R"(", "duration": 1.5, "text": ")" + texts[i] +
             "\"}\n";
    const auto frames = static_cast<std::int64_t>(1000 + 100 * i);
    const std::string stem = "u" + std::to_string(i);
    members.push_back(
        {stem + (i == 2 ? ".wav" : ".flac"), sound(frames, i == 2 ? kWav16 : kFlac16)});
    members.push_back({stem + ".txt", texts[i] + "\n"});
  }
  write("libri/all.tsv", tsv);
  write("libri/all.jsonl", lines);
  data::write_tar(folder / "all.tar", members);
  for (const char* path : {"libri", "libri/all.tsv", "libri/all.jsonl", "all.tar"}) {
    const Utterances all = open_utterances({folder / path});
    ASSERT_EQ(all.size(), 4) << path;
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(all.text(i), texts[static_cast<std::size_t>(i)]) << path;
      EXPECT_EQ(all.info(i).num_frames, 1000 + 100 * i) << path;
      EXPECT_EQ(all.decode(i).samples, make_frames(1000 + 100 * i)) << path;
    }
    EXPECT_EQ(all.identity(), open_utterances({folder / path}).identity());
  }
  const Utterances both = open_utterances({folder / "all.tar", folder / "libri/all.tsv"});
  EXPECT_EQ(both.size(), 8);
  EXPECT_EQ(both.decode(6).samples, make_frames(1200));
}

TEST_F(UtterancesTest, TheIdentityIsOfNamesTextsAndLengths) {
  write("a.flac", sound(1000));
  write("b.flac", sound(1001));
  std::set<std::string> identities;
  for (const char* line : {"a.flac\tX\n", "b.flac\tX\n", "a.flac\tY\n"}) {
    write("all.tsv", std::string("path\ttext\n") + line);
    identities.insert(open_utterances({folder / "all.tsv"}).identity());
  }
  EXPECT_EQ(identities.size(), 3U);
}

TEST_F(UtterancesTest, PartsOfLongFiles) {
  write("long.flac", sound(40000));
  write("all.jsonl",
        R"({"audio_filepath": "long.flac", "offset": 0.5, "duration": 0.25, "text": "A"})"
        "\n"
        R"({"audio_filepath": "long.flac", "offset": 2, "duration": null, "text": "B"})"
        "\n"
        R"({"audio_filepath": "long.flac", "offset": null, "duration": 9, "text": "C"})"
        "\n");
  Utterances all = open_utterances({folder / "all.jsonl"});
  const auto whole = make_frames(40000);
  EXPECT_EQ(all.decode(0).samples, std::vector(whole.begin() + 8000, whole.begin() + 12000));
  EXPECT_EQ(all.decode(1).samples, std::vector(whole.begin() + 32000, whole.end()));
  EXPECT_EQ(all.decode(2).samples, whole);
  write("all.jsonl",
        R"({"audio_filepath": "long.flac", "offset": 2.25, "duration": 0.26, "text": "A"})");
  all = open_utterances({folder / "all.jsonl"});
  EXPECT_EQ(all.decode(0).samples, std::vector(whole.begin() + 36000, whole.end()));
  write("all.jsonl", R"({"audio_filepath": "long.flac", "offset": 2, "duration": 1, "text": "A"})");
  EXPECT_THAT(complaint(),
              AllOf(HasSubstr("all.jsonl"), HasSubstr("names 16000 frames from frame 32000"),
                    HasSubstr("has 40000")));
  write("all.jsonl", R"({"audio_filepath": "long.flac", "offset": -1, "text": "A"})");
  EXPECT_THAT(complaint(), HasSubstr("has '-1' as `offset`: expected seconds"));
}

TEST_F(UtterancesTest, FieldsThatHaveOtherNames) {
  data::write_tar(folder / "all.tar", {{"0.audio", sound(500)}, {"0.json", R"({"said": "HI"})"}});
  const UtteranceFileOptions options{
      .audio_field = "audio", .text_field = "json", .text_key = "said"};
  const Utterances all = open_utterances({folder / "all.tar"}, options);
  EXPECT_EQ(all.text(0), "HI");
  EXPECT_EQ(all.info(0).num_frames, 500);
  write("all.csv", "clip,sentence\nx.flac,HO\n");
  write("x.flac", sound(600));
  EXPECT_EQ(open_utterances({folder / "all.csv"}, {.path_field = "clip"}).text(0), "HO");
}

TEST_F(UtterancesTest, WhatIsMissingIsNamed) {
  write("all.tsv", "path\ttitle\nx.flac\tA\n");
  write("x.flac", sound(100));
  EXPECT_THAT(complaint(),
              AllOf(HasSubstr("all.tsv"), HasSubstr("has no text: expected text, txt")));
  write("all.tsv", "clip\ttext\nx.flac\tA\n");
  EXPECT_THAT(complaint(), HasSubstr("has no audio: expected flac, wav"));
  write("all.tsv", "path\ttext\ny.flac\tA\n");
  EXPECT_THAT(complaint(), HasSubstr("y.flac"));
  EXPECT_EQ(error_of([&] { open_utterances({folder}); }).kind(), ErrorKind::kIo);
  std::filesystem::remove(folder / "all.tsv");
  write("a.trans.txt", "y HELLO\n");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("a.trans.txt' names 'y'"), HasSubstr("flac, wav")));
  write("a.trans.txt", "../y HELLO\n");
  EXPECT_THAT(complaint(), HasSubstr("line 1 of '"));
  write("a.trans.txt", "\n");
  EXPECT_THAT(complaint(), HasSubstr("there are none"));
}

TEST_F(UtterancesTest, DamagedAudioIsAnErrorWhenItIsRead) {
  data::write_tar(folder / "all.tar", {{"0.flac", sound(500)},
                                       {"0.txt", "A"},
                                       {"1.flac", "no sound"},
                                       {"1.txt", "B"},
                                       {"2.flac", sound(9000).substr(0, 5000)},
                                       {"2.txt", "C"}});
  const Utterances all = open_utterances({folder / "all.tar"});
  EXPECT_FALSE(all.is_damaged(0));
  EXPECT_TRUE(all.is_damaged(1));
  for (const std::int64_t index : {1, 2}) {
    const Error error = error_of([&] { all.decode(index); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("record '" + std::to_string(index) + "' of '"),
                                       HasSubstr("all.tar")));
  }
  EXPECT_EQ(error_of([&] { all.info(3); }).kind(), ErrorKind::kInvalidArgument);
}

TEST_F(UtterancesTest, AFileThatChangedIsAnError) {
  write("x.flac", sound(500));
  write("all.tsv", "path\ttext\nx.flac\tA\n");
  const Utterances all = open_utterances({folder / "all.tsv"});
  write("x.flac", sound(400));
  const Error error = error_of([&] { all.decode(0); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("all.tsv"), HasSubstr("there are 400")));
  write("x.flac", to_audio({.sample_rate = 8000}, make_frames(500)));
  EXPECT_THAT(error_of([&] { all.decode(0); }).message(),
              AllOf(HasSubstr("all.tsv"), HasSubstr("8000 Hz"), HasSubstr("16000")));
}

}  // namespace
}  // namespace trireme::speech
