#include "trireme/data/mds_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/data/folder_files.h"
#include "tests/data/mds_file.h"
#include "tests/data/packed_file.h"
#include "trireme/base/json.h"

namespace trireme::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// What MosaicML's streaming 0.13.0 wrote of three samples, as a shard and as one compressed by zstd.
constexpr std::string_view kIndexOfAnotherWriter =
    R"({"shards": [{"column_encodings": ["float32", "float16", "json", "int", "pkl", "bytes", ")"
    R"(str", "uint8"], "column_names": ["f", "h", "meta", "n", "obj", "raw", "text", "u8"], "co)"
    R"(lumn_sizes": [4, 2, null, 8, null, null, null, 1], "compression": null, "format": "mds",)"
    R"( "hashes": ["sha1"], "raw_data": {"basename": "shard.00000.mds", "bytes": 544, "hashes":)"
    R"( {"sha1": "dcbc1a83a8204a1e448cad401ba4353c87a11b91"}}, "samples": 3, "size_limit": 700,)"
    R"( "version": 2, "zip_data": null}], "version": 2})";
constexpr std::string_view kShardOfAnotherWriter =
    "030000004501000089010000d2010000200200007b22636f6c756d6e5f656e636f64696e6773223a205b22666c6f61"
    "74"
    "3332222c2022666c6f61743136222c20226a736f6e222c2022696e74222c2022706b6c222c20226279746573222c20"
    "22"
    "737472222c202275696e7438225d2c2022636f6c756d6e5f6e616d6573223a205b2266222c202268222c20226d6574"
    "61"
    "222c20226e222c20226f626a222c2022726177222c202274657874222c20227538225d2c2022636f6c756d6e5f7369"
    "7a"
    "6573223a205b342c20322c206e756c6c2c20382c206e756c6c2c206e756c6c2c206e756c6c2c20315d2c2022636f6d"
    "70"
    "72657373696f6e223a206e756c6c2c2022666f726d6174223a20226d6473222c2022686173686573223a205b227368"
    "61"
    "31225d2c202273697a655f6c696d6974223a203730302c202276657273696f6e223a20327d10000000120000000300"
    "00"
    "00000000000000003f00007b226b223a205b302c206e756c6c5d7d000000000000000080049507000000000000004b"
    "01"
    "4b0086942e00ff00c8100000001200000003000000050000000000c03f00387b226b223a205b312c206e756c6c5d7d"
    "ff"
    "ffffffffffffff80049507000000000000004b014b0186942e00ff01636166c3a9c91000000012000000030000000a"
    "00"
    "000000002040003c7b226b223a205b322c206e756c6c5d7dfeffffffffffffff80049507000000000000004b014b02"
    "86"
    "942e00ff02636166c3a9636166c3a9ca";
constexpr std::string_view kPackedIndexOfAnotherWriter =
    R"({"shards": [{"column_encodings": ["float32", "float16", "json", "int", "pkl", "bytes", ")"
    R"(str", "uint8"], "column_names": ["f", "h", "meta", "n", "obj", "raw", "text", "u8"], "co)"
    R"(lumn_sizes": [4, 2, null, 8, null, null, null, 1], "compression": "zstd:3", "format": "m)"
    R"(ds", "hashes": ["sha1"], "raw_data": {"basename": "shard.00000.mds", "bytes": 548, "hash)"
    R"(es": {"sha1": "3a609121aeb1eaa057860c856aecefbecae215e3"}}, "samples": 3, "size_limit": )"
    R"(700, "version": 2, "zip_data": {"basename": "shard.00000.mds.zstd", "bytes": 332, "hashe)"
    R"(s": {"sha1": "92f21ef4f4df909cd3564be5e37b682e184a5317"}}}], "version": 2})";
constexpr std::string_view kPackedShardOfAnotherWriter =
    "28b52ffd602401150a00b2ce3635506b9b03203333cd7057db88d99d992d24c3c14f5634ecb27b5a5a7cda1859a708"
    "76"
    "06d8451eada230f6f2ada18ab658f388b73b051d1bce25abe7f99016cef00638369c4b56ce75a2e9128d808d777e80"
    "61"
    "f1899b5c2003a0424381309243fe17fc27d048d984802f429002b5b456e6463b925843ac2566d92c6d86af0865e5de"
    "e0"
    "a3e0c5b47b66191b4d2fd6aadd17a5171136da9ac4cc1132bb58b0ccd362d3cafb22054ef9522dcbdd334f582a2693"
    "2f"
    "bdb82f09d18b508a6489eb051d1e05fbe1520b577756aed52aae20c5ff18fccee37717bf6bf80f093020c002311ade"
    "44"
    "bcce671221c9f632b26d6fca20771ec3a5023bc26937b23bc1cb1ef693429c52b8b42488f2b0b1c3b3e94e91e4b6f1"
    "bd"
    "25dd2be4310939c0e4731884bb6237d8d06672836d09b2a75e41c311af3fd931ad6e8772875df285cbd88202";

std::string bytes_of_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

class MdsRecordsTest : public FolderFiles {
 protected:
  void write_index(const std::vector<Json>& shards) const {
    write("index.json", mds_index(shards));
  }

  /// One shard of two samples, `content` where it is given.
  void write_small(const std::string& content = {}) const {
    const std::vector<MdsSample> samples = {{"one", "1"}, {"three", "3"}};
    const std::string shard = mds_shard(small, samples);
    write("0.mds", content.empty() ? shard : content);
    write_index({mds_entry("0.mds", small, 2, shard.size())});
  }

  std::string complaint(ErrorKind kind = ErrorKind::kCorruptData) const {
    const Error error = error_of([&] { const MdsRecords records(folder); });
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.message();
  }

  const std::vector<MdsColumn> small = {{"text", "str"}, {"label", "uint8", 1}};
};

TEST_F(MdsRecordsTest, FoldersOfAnotherWriterAreRead) {
  write("raw/index.json", kIndexOfAnotherWriter);
  write("raw/shard.00000.mds", bytes_of_hex(kShardOfAnotherWriter));
  write("packed/index.json", kPackedIndexOfAnotherWriter);
  write("packed/shard.00000.mds.zstd", bytes_of_hex(kPackedShardOfAnotherWriter));
  for (const char* name : {"raw", "packed"}) {
    const MdsRecords records(folder / name);
    ASSERT_EQ(records.num_records(), 3) << name;
    EXPECT_THAT(records.fields(0), ElementsAre("f", "h", "meta", "n", "obj", "raw", "text", "u8"));
    for (int i = 0; i < 3; ++i) {
      std::string text;
      for (int k = 0; k < i; ++k) text += "caf\xC3\xA9";
      EXPECT_EQ(text_of(records.read(i, "text")), text);
      EXPECT_EQ(text_of(records.read(i, "raw")), std::string("\0\xFF", 2) + static_cast<char>(i));
      EXPECT_EQ(text_of(records.read(i, "n")), mds_number(std::int64_t{-i}));
      EXPECT_EQ(text_of(records.read(i, "u8")), std::string(1, static_cast<char>(200 + i)));
      EXPECT_EQ(text_of(records.read(i, "f")), mds_number(static_cast<float>(i) + 0.5F));
      EXPECT_EQ(text_of(records.read(i, "meta")), "{\"k\": [" + std::to_string(i) + ", null]}");
    }
    EXPECT_EQ(text_of(records.read(2, "h")), std::string("\0\x3C", 2)) << "1.0";
    const Error pickled = error_of([&] { records.read(1, "obj"); });
    EXPECT_EQ(pickled.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(pickled.message(), AllOf(HasSubstr("record 1 of '"), HasSubstr("shard.00000.mds"),
                                         HasSubstr("field 'obj' is encoded as pkl")));
  }
}

TEST_F(MdsRecordsTest, WhatIsWrittenIsReadInEveryPacking) {
  std::mt19937_64 random(9);
  const std::vector<MdsColumn> columns = {
      {"a", "bytes"}, {"b", "int", 8}, {"c", "str"}, {"d", "float16", 2}, {"e", "jpeg"}};
  std::vector<MdsSample> written;
  std::vector<Json> shards;
  for (int s = 0; s < 12; ++s) {
    std::vector<MdsSample> samples(1 + random() % 40);
    for (MdsSample& sample : samples) {
      for (const MdsColumn& column : columns) {
        const auto bytes =
            column.bytes < 0 ? random() % 300 : static_cast<std::uint64_t>(column.bytes);
        sample.emplace_back(bytes, static_cast<char>(random()));
      }
    }
    const std::string name = "part" + std::to_string(s) + "/x.mds";
    const std::string shard = mds_shard(columns, samples);
    shards.push_back(mds_entry(name, columns, samples.size(), shard.size()));
    const std::string ending = s % 3 == 0 ? "" : s % 3 == 1 ? ".zstd" : ".gz";
    write(name + ending, s % 3 == 0 ? shard : s % 3 == 1 ? zstd(shard) : gzip(shard));
    if (s % 3 != 0) shards.back()["zip_data"] = {{"basename", name + ending}};
    written.insert(written.end(), samples.begin(), samples.end());
  }
  write_index(shards);
  const MdsRecords records(folder);
  ASSERT_EQ(records.num_records(), std::ssize(written));
  for (std::int64_t i = std::ssize(written) - 1; i >= 0; --i) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      EXPECT_EQ(text_of(records.read(i, columns[c].name)), written[i][c]) << i << columns[c].name;
    }
  }
}

TEST_F(MdsRecordsTest, AShardThatIsNotAsTheIndexSaysIsRefused) {
  const std::string whole = mds_shard(small, {{"one", "1"}, {"three", "3"}});
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    write_small(whole.substr(0, bytes));
    EXPECT_THAT(complaint(),
                AllOf(HasSubstr("0.mds' has " + std::to_string(bytes) + " bytes, in")));
  }
  for (std::size_t at = 0; at < 16; ++at) {
    std::string damaged = whole;
    damaged[at] ^= static_cast<char>(0x80);
    write_small(damaged);
    EXPECT_THAT(complaint(), HasSubstr("0.mds' has ")) << at;
  }
  write_small();
  write_index({mds_entry("0.mds", small, 200, whole.size())});
  EXPECT_THAT(complaint(), HasSubstr("is too short for 200 samples"));
  write("0.mds", "");
  EXPECT_THAT(complaint(), HasSubstr("0.mds' is empty"));
  std::filesystem::remove(folder / "0.mds");
  EXPECT_THAT(complaint(ErrorKind::kIo), HasSubstr("0.mds"));
}

TEST_F(MdsRecordsTest, AnIndexThatIsNoneIsRefused) {
  EXPECT_THAT(complaint(ErrorKind::kIo), HasSubstr("index.json"));
  write("index.json", "{\"version\": 2, \"shards\": [");
  EXPECT_THAT(complaint(), HasSubstr("index.json' is not valid JSON"));
  write_index({});
  EXPECT_THAT(complaint(), HasSubstr("there are no shards"));
  const std::string shard = mds_shard(small, {{"one", "1"}});
  write("0.mds", shard);
  const Json good = mds_entry("0.mds", small, 1, shard.size());
  const auto changed = [&](const char* key, const Json& value, ErrorKind kind) {
    Json bad = good;
    bad[key] = value;
    write_index({good, bad});
    return complaint(kind);
  };
  constexpr auto kCorrupt = ErrorKind::kCorruptData, kInvalid = ErrorKind::kInvalidArgument;
  EXPECT_THAT(
      changed("column_names", {"text", "class"}, kCorrupt),
      AllOf(HasSubstr("index.json'.shards[1]"), HasSubstr("expected that of the first shard")));
  EXPECT_THAT(changed("column_encodings", {"str", "int8"}, kCorrupt), HasSubstr("shards[1]"));
  EXPECT_THAT(changed("column_encodings", {"str"}, kCorrupt), HasSubstr("one for each name"));
  EXPECT_THAT(changed("column_sizes", {nullptr, -1}, kCorrupt), HasSubstr("column_sizes[1]"));
  EXPECT_THAT(changed("samples", "1", kCorrupt), HasSubstr("shards[1].samples"));
  EXPECT_THAT(changed("version", 1, kInvalid), HasSubstr("expected version 2"));
  EXPECT_THAT(changed("format", "xsv", kInvalid), HasSubstr("expected mds"));
  Json packed = good;
  packed["raw_data"]["basename"] = "none.mds";
  packed["zip_data"] = {{"basename", "none.mds.br"}};
  packed["compression"] = "br:11";
  write_index({packed});
  EXPECT_THAT(complaint(kInvalid),
              AllOf(HasSubstr("none.mds.br"), HasSubstr("as br:11; expected")));
}

TEST_F(MdsRecordsTest, WhatCannotBeReadIsNamed) {
  std::string content = mds_shard(small, {{"one", "1"}, {"three", "3"}});
  content[content.size() - 10] ^= 2;  // the size of the last text
  write_small(content);
  const MdsRecords records(folder);
  EXPECT_EQ(text_of(records.read(0, "text")), "one");
  const Error error = error_of([&] { records.read(1, "text"); });
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), AllOf(HasSubstr("record 1 of '"), HasSubstr("0.mds' is damaged")));
  EXPECT_THAT(error_of([&] { records.read(0, "x"); }).message(),
              AllOf(HasSubstr("record 0 of '"), HasSubstr("no field 'x'; it has text label")));
  EXPECT_THAT(error_of([&] { records.read(2, "text"); }).message(),
              HasSubstr("no record 2 among 2"));
  write("0.mds", content + "more");
  EXPECT_THAT(error_of([&] { records.read(0, "text"); }).message(), HasSubstr("has changed since"));
}

TEST_F(MdsRecordsTest, IdentityTellsColumnsAndSizesButNoNames) {
  const auto identity = [&](const std::string& name, const std::vector<MdsColumn>& columns,
                            const std::vector<MdsSample>& samples) {
    const std::string shard = mds_shard(columns, samples);
    write(name, shard);
    write_index({mds_entry(name, columns, samples.size(), shard.size())});
    return MdsRecords(folder).identity();
  };
  const std::string base = identity("a.mds", small, {{"one", "1"}});
  EXPECT_EQ(base, identity("b.mds", small, {{"one", "1"}}));
  EXPECT_NE(base, identity("c.mds", small, {{"three", "1"}}));
  EXPECT_NE(base, identity("d.mds", {{"text", "str"}, {"class", "uint8", 1}}, {{"one", "1"}}));
}

}  // namespace
}  // namespace trireme::data
