#include "trireme/plan/topology/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "trireme/base/error.h"
#include "trireme/base/files.h"

namespace trireme::topology {
namespace {

using ::testing::HasSubstr;

Topology two_hosts() {
  return {{{"a", 4, 8192}, {"b", 2, 4096}}, {{0, {0, 1}, 4096}, {1, {0}, 2048}}};
}

std::string complaint(const std::function<void(Json&)>& change) {
  Json json = to_json(two_hosts());
  change(json);
  try {
    topology_from_json(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  }
  return "";
}

TEST(TopologyJson, ReadsAsAPersonWouldWriteIt) {
  EXPECT_EQ(readable_text(to_json(two_hosts())), R"({
  "hosts": [
    {"memory_bytes": 8192, "name": "a", "num_cores": 4},
    {"memory_bytes": 4096, "name": "b", "num_cores": 2}
  ],
  "ranks": [
    {"cores": [0, 1], "host": 0, "memory_bytes": 4096},
    {"cores": [0], "host": 1, "memory_bytes": 2048}
  ]
}
)");
}

TEST(TopologyJson, TopologyAndTextSurviveTheRoundTrip) {
  for (const Topology& topology : {two_hosts(), Topology{}}) {
    const std::string text = to_document_text(kTopologyDocument, to_json(topology));
    const Topology back = topology_from_json(parse_document(kTopologyDocument, text, "x"));
    EXPECT_EQ(back, topology);
    EXPECT_EQ(to_document_text(kTopologyDocument, to_json(back)), text);
    EXPECT_EQ(topology_sha256(back), topology_sha256(topology));
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

TEST(TopologyJson, TheExampleOfTheFormatsIsWhatTheCodeWrites) {
  const std::string formats = read_file("docs/formats.md");
  const std::size_t section = formats.find("(`trireme.topology`)");
  const std::size_t begin = formats.find("```json\n", section) + 8;
  const std::string example = formats.substr(begin, formats.find("```\n", begin) - begin);
  const Json body = parse_document(kTopologyDocument, example, "docs/formats.md");
  EXPECT_EQ(to_document_text(kTopologyDocument, to_json(topology_from_json(body))), example);
}

TEST(TopologyJson, FilesLoadAndErrorsNameThem) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("trireme_topology_" + std::to_string(::getpid()) + ".json");
  EXPECT_EQ(save(two_hosts(), path), topology_sha256(two_hosts()));
  EXPECT_EQ(load(path), two_hosts());
  write_document(path, kTopologyDocument, {{"hosts", 1}});
  try {
    load(path);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(error.message(), HasSubstr(path.string()));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace trireme::topology
