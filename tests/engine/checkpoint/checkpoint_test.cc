#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/base/test_folder.h"
#include "trireme/base/files.h"
#include "trireme/engine/checkpoint/checkpoint_reader.h"
#include "trireme/engine/checkpoint/checkpoint_writer.h"
#include "trireme/error.h"

namespace trireme::checkpoint {
namespace {

using testing::HasSubstr;

/// A checkpoint of a few odd tensors, written by three.
class Checkpoints : public test::TestFolder {
 protected:
  Checkpoints() {
    at::manual_seed(1);
    items = {{"parameters/weight", at::randn({7, 5})},
             {"parameters/turned", at::randn({4, 6}).t()},
             {"parameters/scalar", at::randn({})},
             {"parameters/empty", at::empty({0, 3})},
             {"buffers/count", at::arange(9, at::kLong)},
             {"buffers/half", at::randn({2, 3, 4}).to(at::kBFloat16)}};
    Index index{.step = 12, .position = 768, .facts = {{"seed", "3"}}};
    for (int part = 0; part < 3; ++part) {
      index.contents.merge(ShareFile(file(part), items, {part, 3}).write(folder));
    }
    save(index, folder / "index.json");
  }

  static std::string file(int part) { return "rank-" + std::to_string(part) + ".safetensors"; }

  Error error_of(const std::function<void(Reader&)>& act = {}) const {
    try {
      Reader reader(folder);
      reader.verify();
      if (act) act(reader);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return Error(ErrorKind::kIo, "none");
  }

  std::vector<KeyedTensor> items;
};

TEST_F(Checkpoints, HoldWhatWasWritten) {
  Reader reader(folder);
  EXPECT_EQ(reader.index().step, 12);
  EXPECT_EQ(reader.index().position, 768);
  EXPECT_EQ(reader.index().facts, (Facts{{"seed", "3"}}));
  EXPECT_EQ(reader.index().contents.tensors.size(), items.size());
  bool has_slices = false;
  for (const KeyedTensor& item : items) {
    const at::Tensor place =
        at::empty_strided(item.tensor.sizes(), item.tensor.strides(), item.tensor.options());
    reader.read(item.key, place);
    EXPECT_TRUE(at::equal(place, item.tensor)) << item.key;
    EXPECT_TRUE(at::equal(reader.read(item.key), item.tensor)) << item.key;
    has_slices |= reader.index().contents.tensors.at(item.key).slices.size() > 1;
  }
  EXPECT_TRUE(has_slices) << "no tensor was divided";
}

TEST_F(Checkpoints, RefuseOtherTensors) {
  EXPECT_THAT(error_of([](Reader& r) { r.read("parameters/lost"); }).message(),
              HasSubstr("has no 'parameters/lost'"));
  const Error shape = error_of([](Reader& r) { r.read("parameters/weight", at::empty({5, 7})); });
  EXPECT_EQ(shape.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(shape.message(), HasSubstr("f32 [7, 5]"));
  EXPECT_THAT(shape.message(), HasSubstr("f32 [5, 7] here"));
  EXPECT_THAT(error_of([](Reader& r) { r.read("buffers/count", at::empty({9})); }).message(),
              HasSubstr("i64 [9]"));
}

TEST_F(Checkpoints, NoticeAChangedByte) {
  std::vector<std::byte> bytes = read_file_bytes(folder / file(1));
  bytes.back() ^= std::byte{1};
  write_file_atomically(folder / file(1), bytes);
  const Error error = error_of();
  EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
  EXPECT_THAT(error.message(), HasSubstr("rank-1.safetensors' is not the file"));
  EXPECT_THAT(error.message(), HasSubstr("where there is an older one, --resume takes that"));
}

TEST_F(Checkpoints, NoticeACutOrMissingFileAtOnce) {
  std::filesystem::resize_file(folder / file(2), 100);
  EXPECT_THAT(error_of().message(), HasSubstr("bytes, got 100"));
  std::filesystem::remove(folder / file(2));
  EXPECT_THAT(error_of().message(), HasSubstr("No such file"));
}

TEST_F(Checkpoints, NoticeAnEditedIndex) {
  std::string text = read_file(folder / "index.json");
  const auto edit = [&](const std::string& from, const std::string& to) {
    std::string edited = text;
    edited.replace(edited.find(from), from.size(), to);
    return edited;
  };
  write_file_atomically(folder / "index.json", edit("\"step\": 12", "\"step\": 13"));
  EXPECT_THAT(error_of().message(), HasSubstr("sha256"));
  Json json = Json::parse(text);
  json.erase("sha256");
  write_file_atomically(folder / "index.json", json.dump());
  EXPECT_THAT(error_of().message(), HasSubstr("no field sha256"));
  std::filesystem::remove(folder / "index.json");
  EXPECT_EQ(error_of().kind(), ErrorKind::kIo);
}

/// The index with a change to its JSON, as somebody would write it who means it.
void change_index(const std::filesystem::path& path, const std::function<void(Json&)>& change) {
  Json json = Json::parse(read_file(path));
  for (const char* name : {"format", "version", "sha256"}) json.erase(name);
  change(json);
  write_document(path, kIndexDocument, json);
}

TEST_F(Checkpoints, RefuseAnIndexThatCannotBe) {
  const std::string original = read_file(folder / "index.json");
  const auto message = [&](const std::function<void(Json&)>& change) {
    write_file_atomically(folder / "index.json", original);
    change_index(folder / "index.json", change);
    const Error error = error_of();
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  };
  EXPECT_THAT(message([](Json& j) { j["contents"]["files"][0]["name"] = "../secret"; }),
              HasSubstr("own folder"));
  EXPECT_THAT(
      message([](Json& j) { j["contents"]["tensors"]["parameters/weight"]["slices"].erase(0); }),
      HasSubstr("'parameters/weight' are not its 7 rows"));
  EXPECT_THAT(message([](Json& j) {
                j["contents"]["tensors"]["parameters/weight"]["slices"][0]["file"] = "x";
              }),
              HasSubstr("'x' is not listed"));
  EXPECT_THAT(
      message([](Json& j) { j["contents"]["tensors"]["parameters/weight"]["shape"][1] = 6; }),
      HasSubstr("lacks 'parameters/weight"));
  EXPECT_THAT(message([](Json& j) { j["extra"] = 1; }), HasSubstr("extra"));
  EXPECT_THAT(message([](Json& j) { j["contents"]["files"].push_back(j["contents"]["files"][0]); }),
              HasSubstr("listed twice"));
}

TEST_F(Checkpoints, AskForNoMemoryOnAnIndexsWord) {
  change_index(folder / "index.json", [](Json& j) {
    Json& tensor = j["contents"]["tensors"]["parameters/weight"];
    tensor["shape"][1] = std::int64_t{1} << 50;
  });
  Reader reader(folder);
  try {
    reader.read("parameters/weight");
    ADD_FAILURE() << "read a tensor of 2^50 columns";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), HasSubstr("lacks 'parameters/weight"));
  }
}

TEST(Contents, OfOneKeyAreOneTensor) {
  Contents contents{.files = {}, .tensors = {{"w", {Dtype::kF32, {2, 3}, {{"a", 0, 1}}}}}};
  EXPECT_THROW(contents.merge({{}, {{"w", {Dtype::kF32, {2, 4}, {{"b", 1, 2}}}}}}), Error);
  EXPECT_THROW(contents.merge({{}, {{"w", {Dtype::kF64, {2, 3}, {{"b", 1, 2}}}}}}), Error);
  contents.merge({{}, {{"w", {Dtype::kF32, {2, 3}, {{"b", 1, 2}}}}}});
  EXPECT_EQ(contents.tensors["w"].slices.size(), 2U);
}

}  // namespace
}  // namespace trireme::checkpoint
