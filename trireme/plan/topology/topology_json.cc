#include "trireme/plan/topology/topology_json.h"

#include <array>
#include <string_view>

#include "trireme/error.h"

namespace trireme::topology {
namespace {

int read_core(const JsonField& field) { return field.index(0); }

constexpr std::array<std::string_view, 2> kDeviceKindNames = {"gpu", "network"};

NumaNode numa_node_from_json(const JsonField& field) {
  JsonObject object(field);
  NumaNode node;
  node.socket = object.required("socket").index(0);
  node.cores = object.required("cores").list(read_core);
  node.memory_bytes = object.required("memory_bytes").integer(0);
  object.finish();
  return node;
}

HostDevice device_from_json(const JsonField& field) {
  JsonObject object(field);
  HostDevice device;
  device.name = object.required("name").text();
  device.kind = static_cast<HostDeviceKind>(object.required("kind").choice(kDeviceKindNames));
  if (const auto node = object.optional("numa_node")) device.numa_node = node->index(0);
  if (const auto speed = object.optional("gb_per_s")) device.gb_per_s = speed->real();
  object.finish();
  return device;
}

Host host_from_json(const JsonField& field) {
  JsonObject object(field);
  Host host;
  host.name = object.required("name").text();
  host.num_cores = object.required("num_cores").index(0);
  host.memory_bytes = object.required("memory_bytes").integer(0);
  if (const auto nodes = object.optional("numa_nodes"))
    host.numa_nodes = nodes->list(numa_node_from_json);
  if (const auto devices = object.optional("devices"))
    host.devices = devices->list(device_from_json);
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

constexpr std::array<std::string_view, 3> kPassingNames = {"host", "network", "all"};

SharedLink link_from_json(const JsonField& field) {
  JsonObject object(field);
  SharedLink link;
  link.name = object.required("name").text();
  link.ranks = object.required("ranks").list(read_core);
  link.gb_per_s = object.required("gb_per_s").real();
  link.passing = static_cast<Passing>(object.required("messages").choice(kPassingNames));
  object.finish();
  return link;
}

}  // namespace

namespace {

Json to_json(const Host& host) {
  Json json = {
      {"name", host.name}, {"num_cores", host.num_cores}, {"memory_bytes", host.memory_bytes}};
  for (const NumaNode& node : host.numa_nodes) {
    json["numa_nodes"].push_back(
        {{"socket", node.socket}, {"cores", node.cores}, {"memory_bytes", node.memory_bytes}});
  }
  for (const HostDevice& device : host.devices) {
    Json one = {{"name", device.name},
                {"kind", kDeviceKindNames[static_cast<std::size_t>(device.kind)]}};
    if (device.numa_node >= 0) one["numa_node"] = device.numa_node;
    if (device.gb_per_s > 0) one["gb_per_s"] = device.gb_per_s;
    json["devices"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

Json to_json(const Topology& topology) {
  Json json = {{"hosts", Json::array()}, {"ranks", Json::array()}};
  for (const Host& host : topology.hosts) json["hosts"].push_back(to_json(host));
  for (const RankPlace& place : topology.ranks) {
    json["ranks"].push_back(
        {{"host", place.host}, {"cores", place.cores}, {"memory_bytes", place.memory_bytes}});
    if (place.threads != 1) json["ranks"].back()["threads"] = place.threads;
    if (place.speed != 1) json["ranks"].back()["speed"] = place.speed;
  }
  for (const SharedLink& link : topology.shared_links) {
    json["shared_links"].push_back(
        {{"name", link.name},
         {"ranks", link.ranks},
         {"gb_per_s", link.gb_per_s},
         {"messages", kPassingNames[static_cast<std::size_t>(link.passing)]}});
  }
  return json;
}

Topology topology_from_json(const Json& body) {
  JsonObject object(JsonField(body, "topology"));
  Topology topology;
  topology.hosts = object.required("hosts").list(host_from_json);
  topology.ranks = object.required("ranks").list(place_from_json);
  if (const auto links = object.optional("shared_links"))
    topology.shared_links = links->list(link_from_json);
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
