#include "trireme/engine/train/memory_check.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "trireme/base/json.h"
#include "trireme/engine/measure/detect_topology.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/error.h"

namespace trireme::train {
namespace {

struct Host {
  std::int64_t needed_bytes = 0;
  std::int64_t available_bytes = 0;
};

std::int64_t predicted_bytes(const layout::Plan& plan, int rank) {
  std::int64_t bytes = 0;
  for (const auto& [kind, part] : plan.prediction->peak_bytes.at(rank)) bytes += part;
  return bytes;
}

std::string mebibytes(std::int64_t bytes) { return std::to_string((bytes >> 20) + 1) + " MiB"; }

}  // namespace

void check_memory(const collectives::World& world, const layout::Plan& plan) {
  if (!plan.prediction) return;
  const Json mine = {{"host", measure::host_name()},
                     {"available", memory::available_bytes()},
                     {"needed", predicted_bytes(plan, world.rank())}};
  std::map<std::string, Host> hosts;
  for (const std::string& text : collectives::gather(world, compact_text(mine), "memory")) {
    const Json rank = parse_json(text, "memory of a rank");
    Host& host = hosts[rank["host"].get<std::string>()];
    host.needed_bytes += rank["needed"].get<std::int64_t>();
    host.available_bytes = std::max(host.available_bytes, rank["available"].get<std::int64_t>());
  }
  for (const auto& [name, host] : hosts) {
    if (host.needed_bytes <= host.available_bytes) continue;
    throw Error(ErrorKind::kResourceExhausted,
                "the ranks on '" + name + "' are predicted to need " +
                    mebibytes(host.needed_bytes) + ", " +
                    mebibytes(host.needed_bytes - host.available_bytes) +
                    " more than it has left; partition with --device-memory, more stages or "
                    "smaller microbatches, or use more machines");
  }
}

}  // namespace trireme::train
