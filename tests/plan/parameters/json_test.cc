#include "trireme/plan/parameters/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "tests/graphs/sample_graphs.h"
#include "trireme/base/error.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/layout/manual.h"

namespace trireme::parameters {
namespace {

using ::testing::HasSubstr;

ParameterMap sample_map() {
  const graph::Graph graph = graph::testing::make_rich_graph();
  return make_parameter_map(
      graph, layout::make_manual_plan(graph, graph::graph_sha256(graph), std::array{1}, {4, 1, 2}));
}

std::string complaint(const std::function<void(Json&)>& change) {
  Json json = to_json(sample_map());
  change(json);
  try {
    map_from_json(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  }
  return "";
}

TEST(ParameterMapJson, ReadsAsAPersonWouldWriteIt) {
  EXPECT_EQ(readable_text(to_json(sample_map())["buckets"][0]), R"({
  "dtype": "f32",
  "kind": "owner",
  "num_elements": 256,
  "shards": [{"begin_elements": 0, "data_rank": 0, "end_elements": 256}],
  "slots": [
    {
      "first_norm_block": 1,
      "num_elements": 256,
      "offset_elements": 0,
      "parameter": "embed.weight",
      "site": 0
    }
  ],
  "stage": 0
}
)");
}

TEST(ParameterMapJson, MapAndTextSurviveTheRoundTrip) {
  const ParameterMap map = sample_map();
  const std::string text = to_document_text(kParameterMapDocument, to_json(map));
  const ParameterMap back = map_from_json(parse_document(kParameterMapDocument, text, "x"));
  EXPECT_EQ(back, map);
  EXPECT_EQ(to_document_text(kParameterMapDocument, to_json(back)), text);
}

TEST(ParameterMapJson, ABadFieldIsNamedByItsPlace) {
  EXPECT_EQ(complaint([](Json& json) { json["buckets"][0]["kind"] = "own"; }),
            "parameter map.buckets[0].kind: expected one of owner, mirror, site, got \"own\"");
  EXPECT_THAT(complaint([](Json& json) { json["buckets"][0]["slots"][0]["site"] = -1; }),
              HasSubstr("parameter map.buckets[0].slots[0].site: expected a whole number"));
  EXPECT_THAT(complaint([](Json& json) { json["buckets"][0].erase("shards"); }),
              HasSubstr("the field \"shards\" is missing"));
}

TEST(ParameterMapJson, FilesLoadAndErrorsNameThem) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("trireme_map_" + std::to_string(::getpid()) + ".json");
  save(sample_map(), path);
  EXPECT_EQ(load(path), sample_map());
  write_document(path, kParameterMapDocument, {{"buckets", 1}});
  try {
    load(path);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr(path.string()));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace trireme::parameters
