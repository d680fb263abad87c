#include "trireme/plan/topology/topology_json.h"

#include "trireme/error.h"

namespace trireme::topology {
namespace {

int read_core(const JsonField& field) { return field.index(0); }

Host host_from_json(const JsonField& field) {
  JsonObject object(field);
  Host host;
  host.name = object.required("name").text();
  host.num_cores = object.required("num_cores").index(0);
  host.memory_bytes = object.required("memory_bytes").integer(0);
  object.finish();
  return host;
}

RankPlace place_from_json(const JsonField& field) {
  JsonObject object(field);
  RankPlace place;
  place.host = object.required("host").index(0);
  place.cores = object.required("cores").list(read_core);
  place.memory_bytes = object.required("memory_bytes").integer(0);
  if (const auto threads = object.optional("threads")) place.threads = threads->index(1);
  if (const auto speed = object.optional("speed")) place.speed = speed->real();
  object.finish();
  return place;
}

}  // namespace

Json to_json(const Topology& topology) {
  Json json = {{"hosts", Json::array()}, {"ranks", Json::array()}};
  for (const Host& host : topology.hosts) {
    json["hosts"].push_back(
        {{"name", host.name}, {"num_cores", host.num_cores}, {"memory_bytes", host.memory_bytes}});
  }
  for (const RankPlace& place : topology.ranks) {
    json["ranks"].push_back(
        {{"host", place.host}, {"cores", place.cores}, {"memory_bytes", place.memory_bytes}});
    if (place.threads != 1) json["ranks"].back()["threads"] = place.threads;
    if (place.speed != 1) json["ranks"].back()["speed"] = place.speed;
  }
  return json;
}

Topology topology_from_json(const Json& body) {
  JsonObject object(JsonField(body, "topology"));
  Topology topology;
  topology.hosts = object.required("hosts").list(host_from_json);
  topology.ranks = object.required("ranks").list(place_from_json);
  object.finish();
  return topology;
}

std::string topology_sha256(const Topology& topology) {
  return document_sha256(kTopologyDocument, to_json(topology));
}

std::string save(const Topology& topology, const std::filesystem::path& path) {
  return write_document(path, kTopologyDocument, to_json(topology));
}

Topology load(const std::filesystem::path& path) {
  const Json body = read_document(path, kTopologyDocument);
  try {
    Topology topology = topology_from_json(body);
    check(topology);
    return topology;
  } catch (const Error& error) {
    throw Error(ErrorKind::kCorruptData, "'" + path.string() + "': " + error.message());
  }
}

}  // namespace trireme::topology
