#include "trireme/plan/layout/parameter_map_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "tests/base/document_form.h"
#include "tests/graphs/sample_graphs.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::layout {
namespace {

using ::testing::HasSubstr;

ParameterMap sample_map() {
  const graph::Graph graph = graph::testing::make_rich_graph();
  return make_parameter_map(
      graph, make_manual_plan(graph, graph::graph_sha256(graph), std::array{1}, {4, 1, 2}));
}

constexpr forms::DocumentForm<ParameterMap> kMapForm{
    kParameterMapDocument, to_json, parameter_map_from_json, save, load_parameter_map};

std::string map_complaint(const std::function<void(Json&)>& change) {
  return forms::complaint(kMapForm, sample_map(), change);
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
  forms::expect_round_trip(kMapForm, sample_map());
}

TEST(ParameterMapJson, ABadFieldIsNamedByItsPlace) {
  EXPECT_EQ(map_complaint([](Json& json) { json["buckets"][0]["kind"] = "own"; }),
            "parameter map.buckets[0].kind: expected one of owner, mirror, site, got \"own\"");
  EXPECT_THAT(map_complaint([](Json& json) { json["buckets"][0]["slots"][0]["site"] = -1; }),
              HasSubstr("parameter map.buckets[0].slots[0].site: expected a whole number"));
  EXPECT_THAT(map_complaint([](Json& json) { json["buckets"][0].erase("shards"); }),
              HasSubstr("the field \"shards\" is missing"));
}

TEST(ParameterMapJson, FilesLoadAndErrorsNameThem) { forms::expect_files(kMapForm, sample_map()); }

}  // namespace
}  // namespace trireme::layout
