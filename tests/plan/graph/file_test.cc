#include "trireme/plan/graph/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/graphs/sample_graphs.h"
#include "trireme/base/files.h"
#include "trireme/error.h"
#include "trireme/plan/graph/json.h"

namespace trireme::graph {
namespace {

using ::testing::HasSubstr;

class GraphFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder =
        std::filesystem::temp_directory_path() / ("trireme_graph_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    path = folder / "model.json";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  Error load_error() const {
    try {
      load(path);
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr(folder.string()));
      return error;
    }
    return Error(ErrorKind::kCancelled, "was accepted");
  }

  std::filesystem::path folder, path;
};

TEST_F(GraphFile, LoadsWhatWasSaved) {
  const Graph plain = testing::make_mlp();
  EXPECT_EQ(save(plain, path), document_sha256(kGraphDocument, to_json(plain)));
  EXPECT_FALSE(std::filesystem::exists(constants_path(path)));
  EXPECT_EQ(load(path), plain);

  const Graph rich = testing::make_rich_graph();
  EXPECT_EQ(save(rich, path), document_sha256(kGraphDocument, to_json(rich)));
  EXPECT_EQ(constants_path(path), folder / "model.safetensors");
  EXPECT_EQ(load(path), rich);
  const std::string text = read_file(path);
  save(load(path), path);
  EXPECT_EQ(read_file(path), text);
}

TEST_F(GraphFile, ErrorsNameTheFile) {
  EXPECT_EQ(load_error().kind(), ErrorKind::kIo);

  const Graph rich = testing::make_rich_graph();
  save(rich, path);
  std::filesystem::remove(constants_path(path));
  EXPECT_EQ(load_error().kind(), ErrorKind::kIo);

  write_file_atomically(constants_path(path), std::string_view("nothing"));
  EXPECT_EQ(load_error().kind(), ErrorKind::kCorruptData);

  const std::string text = read_file(path);
  write_file_atomically(path, text.substr(0, text.size() / 2));
  EXPECT_EQ(load_error().kind(), ErrorKind::kCorruptData);

  write_document(path, {"trireme.plan", 1}, {{"x", 1}});
  EXPECT_EQ(load_error().kind(), ErrorKind::kInvalidArgument);
}

// Reading takes some 30 times as much memory as the file.
TEST_F(GraphFile, OneThatIsTooLargeIsNotRead) {
  write_file_atomically(path, std::string_view("{"));
  std::filesystem::resize_file(path, (std::uintmax_t{64} << 20) + 1);
  const Error error = load_error();
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(),
              HasSubstr("model.json' has 67108865 bytes; a graph has at most 67108864"));
}

TEST_F(GraphFile, DoesNotSaveABrokenGraph) {
  Graph graph = testing::make_mlp();
  graph.nodes[1].id = -4;
  EXPECT_THROW(save(graph, path), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THROW(save(testing::make_mlp(), folder / "x.safetensors"), Error);
}

}  // namespace
}  // namespace trireme::graph
