#include "trireme/plan/topology/topology_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/base/document_form.h"
#include "trireme/error.h"

namespace trireme::topology {
namespace {

using ::testing::HasSubstr;

Topology three_ranks() {
  return {{{"a", 4, 8192}, {"b", 2, 4096}}, {{0, {0, 1}, 4096, 2}, {1, {0}, 2048, 1, 0.5}}};
}

constexpr forms::DocumentForm<Topology> kForm{kTopologyDocument, to_json, topology_from_json, save,
                                              load};

std::string complaint(const std::function<void(Json&)>& change) {
  return forms::complaint(kForm, three_ranks(), change);
}

TEST(TopologyJson, ReadsAsAPersonWouldWriteIt) {
  EXPECT_EQ(readable_text(to_json(three_ranks())), R"({
  "hosts": [
    {"memory_bytes": 8192, "name": "a", "num_cores": 4},
    {"memory_bytes": 4096, "name": "b", "num_cores": 2}
  ],
  "ranks": [
    {"cores": [0, 1], "host": 0, "memory_bytes": 4096, "threads": 2},
    {"cores": [0], "host": 1, "memory_bytes": 2048, "speed": 0.5}
  ]
}
)");
}

Topology with_parts() {
  Topology topology = three_ranks();
  topology.hosts[0].numa_nodes = {{0, {0, 1}, 4096}, {1, {2, 3}, 4096}};
  topology.hosts[0].devices = {{"eth0", HostDeviceKind::kNetwork, -1, 1.25},
                               {"A100", HostDeviceKind::kGpu, 1}};
  topology.shared_links = {{"card of a", {0}, 1.25}, {"switch", {0, 1}, 64, Passing::kHost}};
  return topology;
}

TEST(TopologyJson, PartsOfHostsAndSharedLinksAreWrittenWhereTheyAreKnown) {
  const std::string text = readable_text(to_json(with_parts()));
  for (const char* part :
       {R"({"gb_per_s": 1.25, "kind": "network", "name": "eth0"})",
        R"({"kind": "gpu", "name": "A100", "numa_node": 1})",
        R"({"cores": [2, 3], "memory_bytes": 4096, "socket": 1})",
        R"({"gb_per_s": 1.25, "messages": "network", "name": "card of a", "ranks": [0]})",
        R"({"gb_per_s": 64.0, "messages": "host", "name": "switch", "ranks": [0, 1]})"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(TopologyJson, TopologyAndTextSurviveTheRoundTrip) {
  for (const Topology& topology : {three_ranks(), with_parts(), Topology{}}) {
    forms::expect_round_trip(kForm, topology);
  }
}

TEST(TopologyJson, ABadFieldIsNamedByItsPlace) {
  EXPECT_EQ(complaint([](Json& json) { json.erase("ranks"); }),
            "topology: the field \"ranks\" is missing");
  EXPECT_THAT(complaint([](Json& json) { json["ranks"][1]["cores"][0] = -1; }),
              HasSubstr("topology.ranks[1].cores[0]: expected a whole number from 0"));
  EXPECT_THAT(complaint([](Json& json) { json["hosts"][0]["cores"] = 4; }),
              HasSubstr("topology.hosts[0]: unknown field \"cores\""));
}

TEST(TopologyJson, TheExampleOfTheFormatsIsWhatTheCodeWrites) { forms::expect_example(kForm); }

TEST(TopologyJson, FilesLoadAndErrorsNameThem) { forms::expect_files(kForm, three_ranks()); }

}  // namespace
}  // namespace trireme::topology
