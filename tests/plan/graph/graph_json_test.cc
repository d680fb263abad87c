#include "trireme/plan/graph/graph_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/graphs/sample_graphs.h"
#include "trireme/base/files.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"

namespace trireme::graph {
namespace {

using ::testing::HasSubstr;

std::string text_of(const Graph& graph) { return to_document_text(kGraphDocument, to_json(graph)); }

Graph read(const std::string& text, std::span<const std::byte> constants = {}) {
  return graph_from_json(parse_document(kGraphDocument, text, "graph.json"), constants);
}

/// What reading the MLP says after a change of its JSON.
std::string complaint(const std::function<void(Json&)>& change) {
  Json json = to_json(testing::make_mlp());
  change(json);
  try {
    graph_from_json(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  }
  return "";
}

TEST(GraphJson, ReadsAsAPersonWouldWriteIt) {
  const Json json = to_json(testing::make_mlp());
  EXPECT_EQ(readable_text(json["nodes"][0]), R"({
  "id": 0,
  "inputs": [{"value": 0}, {"value": 1}, {"value": 2}],
  "name": "0/linear",
  "op": "aten::linear",
  "outputs": [5],
  "overload": ""
}
)");
  EXPECT_EQ(compact_text(json["values"][0]),
            R"({"dtype":"f32","shape":[{"fixed":0,"per_sample":1},8],"source":"input",)"
            R"("storage":0,"strides":[8,1]})");
  EXPECT_EQ(compact_text(json["derived"]["allowed_cuts"]), "[1,2,3]");
  EXPECT_EQ(compact_text(json["derived"]["use_sites"][0]),
            R"({"nodes":[0],"parameter":"0.weight","site":0})");
}

TEST(GraphJson, GraphAndTextSurviveTheRoundTrip) {
  for (const Graph& graph : {testing::make_mlp(), testing::make_rich_graph()}) {
    const std::string text = text_of(graph);
    const std::vector<std::byte> constants = constants_file(graph);
    const Graph back = read(text, constants);
    EXPECT_EQ(back, graph);
    EXPECT_EQ(text_of(back), text);
    EXPECT_EQ(constants_file(back), constants);
    EXPECT_EQ(graph_sha256(back), graph_sha256(graph));
  }
  Graph scoring = testing::make_rich_graph();
  scoring.mode = Mode::kEval;
  scoring.outputs = {{"x", scoring.inputs[0].value}};
  EXPECT_EQ(read(text_of(scoring), constants_file(scoring)), scoring);
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Graph graph = testing::make_random_graph(seed, 20);
    EXPECT_EQ(read(text_of(graph), constants_file(graph)), graph) << "seed " << seed;
  }
}

TEST(GraphJson, TheIdentityCoversWhatIsComputed) {
  const Graph graph = testing::make_rich_graph();
  const std::string hash = graph_sha256(graph);
  const auto changed = [&](auto&& change) {
    Graph other = graph;
    change(other);
    return graph_sha256(other) != hash;
  };
  EXPECT_TRUE(changed([](Graph& g) { g.constants[0].bytes[0] ^= std::byte{1}; }));
  EXPECT_TRUE(changed([](Graph& g) { g.nodes[3].overload += "x"; }));
  EXPECT_TRUE(changed([](Graph& g) { g.nodes[3].id += 1000; }));
  EXPECT_TRUE(changed([](Graph& g) { g.parameters[0].name += "x"; }));
  EXPECT_TRUE(changed([](Graph& g) { g.values[0].shape[0].fixed += 1; }));
  EXPECT_TRUE(changed([](Graph& g) { g.losses[0].coefficient += 1; }));
  EXPECT_TRUE(changed([](Graph& g) { g.outputs = {{"x", 0}}; }));
  EXPECT_TRUE(changed([](Graph& g) { g.mode = Mode::kEval; }));
}

// Plans, profiles and checkpoints named the hash of the whole document: an upgrade of torch, or of a
// rule for cuts, orphaned them all.
TEST(GraphJson, TheIdentitySurvivesATorchUpgradeAndOtherCutRules) {
  Graph graph = testing::make_rich_graph();
  const std::vector<std::byte> constants = constants_file(graph);
  Json json = to_json(graph);
  const std::string hash = graph_sha256(graph);
  EXPECT_EQ(json["graph_sha256"], hash);
  json["torch_version"] = "3.0.0";
  json["nodes"][3]["name"] = "named by another rule";
  json["derived"] = {{"allowed_cuts", {1}}, {"of_a_later_build", 1}};
  EXPECT_EQ(graph_sha256(graph_from_json(json, constants)), hash);
  json.erase("derived");
  EXPECT_EQ(graph_sha256(graph_from_json(json, constants)), hash);
}

TEST(GraphJson, AnIdentityMayBeAbsentButNotWrong) {
  EXPECT_EQ(complaint([](Json& json) { json.erase("graph_sha256"); }), "");
  EXPECT_THAT(complaint([](Json& json) { json["nodes"][0]["overload"] = "out"; }),
              HasSubstr("delete the field after an edit"));
  EXPECT_THAT(complaint([](Json& json) { json["derived"] = 1; }), HasSubstr("expected an object"));
}

TEST(GraphJson, AGraphMayHoldForOneNumberOfSamples) {
  Graph graph = testing::make_mlp();
  for (Value& value : graph.values) {
    for (Size& size : value.shape) size = {0, size.at(8)};
    for (Size& size : value.strides) size = {0, size.at(8)};
  }
  const std::string any = graph_sha256(testing::make_mlp());
  graph.microbatch = 8;
  EXPECT_NE(graph_sha256(graph), any);
  EXPECT_EQ(graph_from_json(to_json(graph)), graph);
  EXPECT_NO_THROW(check_samples(graph, 8));
  EXPECT_THROW(check_samples(graph, 4), Error);
  graph.microbatch = 3;
  EXPECT_THROW(check(graph), Error);  // its inputs have 8 samples
  EXPECT_THAT(complaint([](Json& json) { json["microbatch"] = 8; }),
              HasSubstr("grows with the batch"));
  EXPECT_THAT(complaint([](Json& json) { json["microbatch"] = 0; }), HasSubstr("microbatch"));
}

TEST(GraphJson, ABadFieldIsNamedByItsPlace) {
  EXPECT_EQ(complaint([](Json& json) { json.erase("nodes"); }),
            "graph: the field \"nodes\" is missing");
  EXPECT_EQ(complaint([](Json& json) { json["nodes"][2]["id"] = "2"; }),
            "graph.nodes[2].id: expected a whole number from 0 to 1073741824, got \"2\"");
  EXPECT_EQ(complaint([](Json& json) { json["nodes"][2]["inptus"] = 1; }),
            "graph.nodes[2]: unknown field \"inptus\"; this version knows none of that name");
  EXPECT_EQ(complaint([](Json& json) { json["values"][1]["dtype"] = "float"; }),
            "graph.values[1].dtype: expected the name of a dtype, as f32, got \"float\"");
  EXPECT_EQ(complaint([](Json& json) { json["mode"] = "test"; }),
            "graph.mode: expected one of train, eval, got \"test\"");
  EXPECT_THAT(complaint([](Json& json) { json["nodes"][0]["flags"] = {"radnom"}; }),
              HasSubstr("graph.nodes[0].flags[0]: expected one of no_grad, random"));
  EXPECT_THAT(complaint([](Json& json) { json["nodes"][1]["outputs"] = {4}; }),
              HasSubstr("value 6: it has no source"));
  EXPECT_THAT(complaint([](Json& json) { json = Json::array(); }), HasSubstr("expected an object"));
}

TEST(GraphJson, ConstantsOfAnotherGraphAreRefused) {
  const Graph graph = testing::make_rich_graph();
  const Json json = to_json(graph);
  EXPECT_TRUE(has_constants(json));
  EXPECT_FALSE(has_constants(to_json(testing::make_mlp())));
  Graph other = graph;
  other.constants[0].bytes[0] ^= std::byte{1};
  for (const std::vector<std::byte>& bytes : {constants_file(other), std::vector<std::byte>()}) {
    try {
      graph_from_json(json, bytes);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
      EXPECT_THAT(error.message(), HasSubstr("graph.constants: its data is of another graph"));
    }
  }
}

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
