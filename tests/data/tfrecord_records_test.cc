#include "trireme/data/tfrecord_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/data/folder_files.h"
#include "tests/data/packed_file.h"
#include "tests/data/tfrecord_file.h"

namespace trireme::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class TfrecordRecordsTest : public FolderFiles {
 protected:
  std::string complaint(std::string_view content, const std::string& name = "x.tfrecord") const {
    const auto path = write(name, content);
    const Error error = error_of([&] { const TfrecordRecords records({path}); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData) << error.what();
    EXPECT_THAT(error.message(), HasSubstr(name));
    return error.message();
  }

  template <typename Number>
  static std::string bytes_of(const std::vector<Number>& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
  }
};

/// What the Python package tfrecord 1.14.6 wrote with protobuf 5.29 and crc32c 2.9: {image, label, box, ids}, and
/// {image, label, words, none}, which has two words and no number.
constexpr std::string_view kOfAnotherWriter =
    "6500000000000000ebd05a690a630a0e0a056c6162656c12051a030a01070a210a03696473121a1a180a1601ffffff"
    "ff"
    "ffffffffff01ac028080808080808080400a150a05696d616765120c0a0a0a0800ff706978656c730a170a03626f78"
    "12"
    "10120e0a0c0000003f000000c0286b6e4ef1dd7d244a00000000000000af77dbb00a480a170a056c6162656c120e1a"
    "0c"
    "0a0afbffffffffffffffff010a120a05776f72647312090a070a01610a0262630a0a0a046e6f6e6512021a000a0d0a"
    "05"
    "696d61676512040a020a005de133c1";

TEST_F(TfrecordRecordsTest, FilesOfAnotherWriterAreRead) {
  std::string content;
  for (std::size_t i = 0; i < kOfAnotherWriter.size(); i += 2) {
    content +=
        static_cast<char>(std::stoi(std::string(kOfAnotherWriter.substr(i, 2)), nullptr, 16));
  }
  const TfrecordRecords records({write("a.tfrecord", content)});
  ASSERT_EQ(records.num_records(), 2);
  EXPECT_THAT(records.fields(0), UnorderedElementsAre("image", "label", "box", "ids"));
  EXPECT_EQ(text_of(records.read(0, "image")), std::string_view("\0\xFFpixels", 8));
  EXPECT_EQ(text_of(records.read(0, "label")), bytes_of<std::int64_t>({7}));
  EXPECT_EQ(text_of(records.read(0, "box")), bytes_of<float>({0.5F, -2.0F, 1e9F}));
  EXPECT_EQ(text_of(records.read(0, "ids")),
            bytes_of<std::int64_t>({1, -1, 300, std::int64_t{1} << 62}));
  EXPECT_EQ(text_of(records.read(1, "image")), "");
  EXPECT_EQ(text_of(records.read(1, "label")), bytes_of<std::int64_t>({-5}));
  const Error words = error_of([&] { records.read(1, "words"); });
  EXPECT_EQ(words.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(words.message(), AllOf(HasSubstr("record 1 of '"), HasSubstr("a.tfrecord'"),
                                     HasSubstr("field 'words' is a list of 2 texts")));
  EXPECT_THAT(error_of([&] { records.read(1, "none"); }).message(),
              HasSubstr("field 'none' is a list without numbers"));
}

TEST_F(TfrecordRecordsTest, WhatIsWrittenIsReadInEveryPacking) {
  std::mt19937_64 random(3);
  const auto value = [&](std::uint64_t most) -> TfValue {
    const auto count = 1 + random() % most;
    switch (random() % 3) {
      case 0:
        return std::vector<std::string>{std::string(count - 1, static_cast<char>(random()))};
      case 1: {
        std::vector<std::int64_t> ints;
        while (ints.size() < count)
          ints.push_back(static_cast<std::int64_t>(random() >> random() % 64));
        return ints;
      }
      default: {
        std::vector<float> floats;
        while (floats.size() < count) floats.push_back(static_cast<float>(random()) / 3);
        return floats;
      }
    }
  };
  std::vector<TfFeatures> written;
  std::string shards[3];
  for (int i = 0; i < 300; ++i) {
    TfFeatures& features = written.emplace_back();
    for (std::uint64_t k = random() % 4; k > 0; --k) {
      // Sizes about those at which heads are read alone.
      TfValue own = value(i % 7 == 0 ? 20000 : 40);
      const std::string kind = std::to_string(own.index());  // a field has one
      features.emplace_back("f" + std::to_string(k) + "." + kind, std::move(own));
    }
    shards[i / 100] += tf_record(tf_example(features));
  }
  const TfrecordRecords records({write("0.tfrecord", shards[0]),
                                 write("1.tfrecord.gz", gzip(shards[1])),
                                 write("2.tfrecord.zst", zstd(shards[2]))});
  ASSERT_EQ(records.num_records(), std::ssize(written));
  for (int i = 299; i >= 0; --i) {
    EXPECT_EQ(records.fields(i).size(), written[i].size());
    for (const auto& [name, value] : written[i]) {
      std::string expected;
      if (const auto* texts = std::get_if<0>(&value)) expected = texts->front();
      if (const auto* ints = std::get_if<1>(&value)) expected = bytes_of(*ints);
      if (const auto* floats = std::get_if<2>(&value)) expected = bytes_of(*floats);
      EXPECT_TRUE(text_of(records.read(i, name)) == expected) << i << " " << name;
    }
  }
}

TEST_F(TfrecordRecordsTest, NumbersMayStandAloneAndTheLastOfANameCounts) {
  const std::string key = tf_part(1, "a");
  const std::string ints =
      tf_varint(1 << 3 | 0) + tf_varint(5) + tf_varint(1 << 3 | 0) + tf_varint(6);
  const std::string floats = tf_varint(1 << 3 | 5) + tf_number(0.5F);
  const auto read = [&](const std::string& feature) {
    const std::string first = tf_part(1, key + tf_part(2, tf_feature(std::vector<float>{1})));
    const std::string newer = tf_varint(9 << 3 | 1) + tf_number(std::int64_t{1}) + tf_part(7, "x");
    const std::string message = tf_part(1, first + tf_part(1, key + tf_part(2, feature)));
    const TfrecordRecords records({write("x.tfrecord", tf_record(newer + message))});
    EXPECT_EQ(records.fields(0), std::vector<std::string>{"a"});
    return text_of(records.read(0, "a"));
  };
  EXPECT_EQ(read(tf_part(3, ints)), bytes_of<std::int64_t>({5, 6}));
  EXPECT_EQ(read(tf_part(2, floats)), bytes_of<float>({0.5F}));
}

TEST_F(TfrecordRecordsTest, AShardThatIsCutOffOrDamagedIsRefused) {
  const std::string record = tf_record(tf_example({{"a", std::vector<std::int64_t>{1}}}));
  const std::string whole = record + record;
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    if (bytes == record.size()) continue;
    EXPECT_THAT(complaint(whole.substr(0, bytes)),
                HasSubstr("is cut off at record " + std::to_string(bytes / record.size())));
  }
  for (std::size_t at = 0; at < 12; ++at) {
    std::string damaged = whole;
    damaged[record.size() + at] ^= 4;
    EXPECT_THAT(complaint(damaged),
                AllOf(HasSubstr("does not match its checksum at record 1, byte "),
                      HasSubstr(std::to_string(record.size()))));
  }
  std::string length = tf_number(~std::uint64_t{0});
  length += tf_number(tf_masked_crc(length));
  EXPECT_THAT(complaint(length + whole), HasSubstr("is cut off at record 0"));
  EXPECT_THAT(complaint(""), HasSubstr("is empty"));
  EXPECT_THAT(complaint(gzip(whole)), HasSubstr("a compressed one ends in .gz"));
  EXPECT_THAT(complaint(gzip(whole).substr(0, 30), "x.tfrecord.gz"), HasSubstr("is cut off"));
}

TEST_F(TfrecordRecordsTest, ADamagedRecordIsNamedWhenItIsRead) {
  const std::string record = tf_record(tf_example({{"a", std::vector<std::int64_t>{1}}}));
  for (std::size_t at = 12; at < record.size(); ++at) {
    std::string damaged = record;
    damaged[at] ^= 4;
    const TfrecordRecords records({write("x.tfrecord", record + damaged)});
    EXPECT_EQ(text_of(records.read(0, "a")), bytes_of<std::int64_t>({1}));
    const Error error = error_of([&] { records.read(1, "a"); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("record 1 of '"), HasSubstr("x.tfrecord' is damaged")));
  }
}

/// Messages whose checksums are right, cut at each byte or of random bytes: a value or an error.
TEST_F(TfrecordRecordsTest, WhatIsNoExampleIsNamed) {
  std::mt19937_64 random(2);
  const std::string message = tf_example({{"a", std::vector<std::int64_t>{1, 300}},
                                          {"b", std::vector<float>{1, 2}},
                                          {"c", std::vector<std::string>{"text"}}});
  std::string content;
  for (std::size_t bytes = 0; bytes < message.size(); ++bytes) {
    content += tf_record(message.substr(0, bytes));
  }
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = message;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    content += tf_record(damaged);
  }
  const TfrecordRecords records({write("x.tfrecord", content)});
  ASSERT_EQ(records.num_records(), std::ssize(message) + 2000);
  int num_refused = 0;
  for (std::int64_t i = 0; i < records.num_records(); ++i) {
    for (const char* name : {"a", "b", "c"}) {
      try {
        records.read(i, name);
      } catch (const Error& error) {
        ++num_refused;
        EXPECT_THAT(error.message(), HasSubstr("record " + std::to_string(i) + " of '"));
      }
    }
  }
  EXPECT_GT(num_refused, 1000);
  EXPECT_THAT(error_of([&] { records.read(0, "a"); }).message(),
              HasSubstr("no field 'a'; it has none"));
  EXPECT_THAT(error_of([&] { records.read(1, "a"); }).message(),
              HasSubstr("is no tf.train.Example"));
}

TEST_F(TfrecordRecordsTest, IdentityTellsTheLengthsOfRecords) {
  const std::string a = tf_record("aa"), b = tf_record("b");
  const std::string base = TfrecordRecords({write("a.tfrecord", a + b)}).identity();
  EXPECT_EQ(base, TfrecordRecords({write("b.tfrecord", a + b)}).identity());
  EXPECT_NE(base, TfrecordRecords({write("c.tfrecord", b + a)}).identity());
}

}  // namespace
}  // namespace trireme::data
