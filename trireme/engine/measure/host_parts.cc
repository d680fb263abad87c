#include "trireme/engine/measure/host_parts.h"

#include <hwloc.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "trireme/base/kernel_files.h"
#include "trireme/error.h"
#include "trireme/wire/system/interfaces.h"

namespace trireme::measure {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Machine = std::unique_ptr<hwloc_topology, Destroy>;

Machine load(const std::string& synthetic) {
  hwloc_topology_t loaded = nullptr;
  if (hwloc_topology_init(&loaded) != 0)
    throw Error(ErrorKind::kIo, "hwloc does not start; is its library the one of its header?");
  Machine machine(loaded);
  hwloc_topology_set_io_types_filter(loaded, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (!synthetic.empty() && hwloc_topology_set_synthetic(loaded, synthetic.c_str()) != 0)
    throw Error(ErrorKind::kInvalidArgument, "hwloc does not know the machine '" + synthetic + "'");
  if (hwloc_topology_load(loaded) != 0)
    throw Error(ErrorKind::kIo, "hwloc finds nothing out about this machine; is /sys there?");
  return machine;
}

/// Numbers of the system.
std::vector<int> numbers_of(hwloc_const_bitmap_t set) {
  std::vector<int> numbers;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) numbers.push_back(i);
  return numbers;
}

int socket_of(hwloc_topology_t machine, hwloc_obj_t object) {
  const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_PACKAGE, object);
  return package == nullptr ? 0 : static_cast<int>(package->logical_index);
}

std::vector<topology::NumaNode> numa_nodes_of(hwloc_topology_t machine) {
  std::vector<topology::NumaNode> nodes;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, object)) != nullptr) {
    topology::NumaNode node{
        .socket = socket_of(machine, object),
        .cores = numbers_of(object->cpuset),
        .memory_bytes = static_cast<std::int64_t>(object->attr->numanode.local_memory)};
    if (!node.cores.empty()) nodes.push_back(std::move(node));  // Others are memory alone.
  }
  return nodes;
}

/// Of the node that a device is nearest to; -1 where it is as near to all.
int numa_node_of(hwloc_topology_t machine, hwloc_obj_t device,
                 const std::vector<topology::NumaNode>& nodes) {
  const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(machine, device);
  const std::vector<int> cores = numbers_of(near->cpuset);
  if (cores.empty()) return -1;  // All sets have those of an empty one.
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes.size() > 1 && std::ranges::includes(nodes[n].cores, cores))
      return static_cast<int>(n);
  }
  return -1;
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

std::vector<topology::HostDevice> devices_of(hwloc_topology_t machine,
                                             const std::vector<topology::NumaNode>& nodes) {
  std::vector<topology::HostDevice> devices;
  const auto add = [&](hwloc_obj_t object, topology::HostDeviceKind kind, const std::string& name) {
    const bool is_card = kind == topology::HostDeviceKind::kNetwork;
    const int megabits = is_card ? transport::megabits_of_interface(name).value_or(0) : 0;
    devices.push_back({name, kind, numa_node_of(machine, object, nodes), megabits / 8e3});
  };
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_osdev(machine, object)) != nullptr;) {
    if (object->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK)
      add(object, topology::HostDeviceKind::kNetwork, text_of(object->name));
  }
  // By their class: without a driver they are no devices of the system's.
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_pcidev(machine, object)) != nullptr;) {
    const auto& pci = object->attr->pcidev;
    if (!is_gpu(pci.class_id, pci.vendor_id)) continue;
    char address[32];
    std::snprintf(address, sizeof address, "%04x:%02x:%02x.%x", pci.domain, pci.bus, pci.dev,
                  pci.func);
    const std::string name = text_of(object->name);
    add(object, topology::HostDeviceKind::kGpu, (name.empty() ? "" : name + " ") + address);
  }
  std::ranges::sort(devices, {}, &topology::HostDevice::name);
  return devices;
}

}  // namespace

bool is_gpu(unsigned pci_class, unsigned vendor) {
  constexpr unsigned kVga = 0x0300, k3d = 0x0302, kOtherDisplay = 0x0380, kAccelerator = 0x1200;
  constexpr unsigned kNvidia = 0x10de, kAmd = 0x1002, kIntel = 0x8086;
  if (pci_class == kVga) return vendor == kNvidia || vendor == kAmd || vendor == kIntel;
  return pci_class == k3d || pci_class == kOtherDisplay || pci_class == kAccelerator;
}

void add_parts(HostParts parts, topology::Host& host) {
  host.numa_nodes = std::move(parts.numa_nodes);
  host.devices = std::move(parts.devices);
  for (const topology::NumaNode& node : host.numa_nodes) {
    for (const int core : node.cores) host.num_cores = std::max(host.num_cores, core + 1);
  }
}

HostParts host_parts(const std::string& synthetic) {
  const Machine machine = load(synthetic);
  HostParts parts{.numa_nodes = numa_nodes_of(machine.get()), .devices = {}};
  if (synthetic.empty() && parts.numa_nodes.size() == 1) {
    // Of a virtual machine whose memory grows as it is used the kernel may say less for its one node than for all of it.
    std::int64_t& bytes = parts.numa_nodes[0].memory_bytes;
    bytes = std::max(bytes, usable_memory_bytes());
  }
  parts.devices = devices_of(machine.get(), parts.numa_nodes);
  return parts;
}

}  // namespace trireme::measure
