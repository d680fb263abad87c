#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "trireme/base/document.h"
#include "trireme/wire/collectives/description.h"

namespace trireme::collectives {

/// What a message costs: alpha + bytes * beta seconds.
struct LinkCosts {
  double alpha_s = 0;
  double beta_s_per_byte = 0;

  bool operator==(const LinkCosts&) const = default;
};

/// What the algorithms' costs follow from.
struct Costs {
  LinkCosts network;            ///< Between hosts; beta of a host's whole traffic in one direction.
  LinkCosts local;              ///< Between ranks of a host.
  double gamma_s_per_byte = 0;  ///< Reducing, per byte that is read.

  bool operator==(const Costs&) const = default;
};

/// Of a usual host on a usual network: 20 us and 1 GB/s between hosts.
inline constexpr Costs kUsualCosts{.network = {.alpha_s = 20e-6, .beta_s_per_byte = 1e-9},
                                   .local = {.alpha_s = 10e-6, .beta_s_per_byte = 0.3e-9},
                                   .gamma_s_per_byte = 0.1e-9};

/// A call for the tuner: what it is, and where the ranks are.
struct TunerTask {
  Description description;
  int ranks_per_host = 1;  ///< As eligible.h has it.
};

/// A two-hop all_reduce of chunks below this is not chosen where halving-doubling, ring or
/// two-level can be: what its messages cost by themselves is then more than what they carry.
inline constexpr std::int64_t kMinTwoHopChunkBytes = 128 * 1024;

/// By the formulas of docs/algorithms.md, of the ranks' largest share. kInvalidArgument where the
/// algorithm is not eligible.
double predicted_seconds(Algorithm algorithm, const TunerTask& task, const Costs& costs);

/// The eligible one that costs least, the first of equal ones; the description's own is not looked
/// at. The same on all ranks that have the same costs. kInvalidArgument where none is eligible.
Algorithm cheapest(const TunerTask& task, const Costs& costs);

/// A table for people: predicted microseconds by size, 1 KiB to 1 GiB, and what is chosen. The
/// description's count is not looked at.
std::string choices_text(const TunerTask& task, const Costs& costs);

/// A table of what a message and a byte cost.
std::string to_text(const Costs& costs);

inline constexpr DocumentKind kCostsDocument{"trireme.network_costs", 1};

/// The body of the document of costs (docs/formats.md).
Json to_json(const Costs& costs);

/// Inverse of `to_json`. kCorruptData, naming the field; any JSON is safe to pass in.
Costs costs_from_json(const Json& body);

/// Writes the document; returns its sha256. Errors of `write_file_atomically`.
std::string save(const Costs& costs, const std::filesystem::path& path);

/// Inverse of `save`. Errors of `read_document` and `costs_from_json`, naming the file.
Costs load_costs(const std::filesystem::path& path);

}  // namespace trireme::collectives
