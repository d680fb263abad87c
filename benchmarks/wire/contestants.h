#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "benchmarks/wire/contestant.h"

namespace trireme::bench {

/// How the ranks of `bench wire` are started, ours and those of its peers.
struct RankStart {
  int num_ranks = 2;
  std::string transport = "auto";  ///< Of ours.
  std::string algorithm = "auto";  ///< Of ours.
  bool is_any_order = false;       ///< Of ours.
  int timeout_s = 300;
  /// Words before each rank's program, `{rank}` replaced: `ip netns exec host{rank}`. Empty: all
  /// ranks run where this process does.
  std::string enter;
  std::string store_host = "127.0.0.1";  ///< With `enter`: where rank 0 serves the store.
};

/// kUnavailable, with how to get it, where a peer was not built; kInvalidArgument
/// where there is no such peer.
void check_peer(const std::string& peer);

/// Starts our ranks, or a peer's (`gloo`, `mpi`, ours with an algorithm forced: `ring`), in a
/// folder of their own below `folder`.
///
/// name     `ours` or a peer that was checked.
/// Errors   those of Contestant.
std::unique_ptr<Contestant> start_contestant(const std::string& name,
                                             const std::filesystem::path& folder,
                                             const RankStart& start);

/// What the reader should know of how a contestant runs; one line without its end.
std::string describe_contestant(const std::string& name, const RankStart& start);

}  // namespace trireme::bench
