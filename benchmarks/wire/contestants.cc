#include "benchmarks/wire/contestants.h"

#include <unistd.h>

#include <sstream>
#include <string_view>

#include "trireme/base/files.h"
#include "trireme/error.h"
#include "trireme/wire/collectives/algorithm.h"
#include "trireme/wire/system/socket.h"
#include "trireme/wire/system/thread.h"

namespace trireme::bench {
namespace {

using Words = std::vector<std::string>;

/// Where the build puts the peers, and the mpirun that it found (empty: none).
constexpr std::string_view kPeerFolder = TRIREME_PEER_FOLDER;
constexpr std::string_view kMpirun = TRIREME_MPIRUN;

std::string program_of(const std::string& peer) {
  return std::filesystem::path(kPeerFolder) / (peer + "_peer");
}

bool is_oversubscribed(const RankStart& start) {
  return start.num_ranks > transport::count_cores();
}

/// The text with `rank` wherever it says {rank}.
std::string with_rank(std::string text, const std::string& rank) {
  constexpr std::string_view kPlace = "{rank}";
  for (std::size_t at = text.find(kPlace); at != std::string::npos; at = text.find(kPlace)) {
    text.replace(at, kPlace.size(), rank);
  }
  return text;
}

/// `words` behind those that lead to the host of `rank`.
Words entered(const RankStart& start, int rank, const Words& words) {
  Words all;
  std::istringstream prefix(with_rank(start.enter, std::to_string(rank)));
  for (std::string word; prefix >> word;) all.push_back(word);
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Words own_words(const std::string& folder, const RankStart& start) {
  Words words = {std::filesystem::read_symlink("/proc/self/exe"),
                 "wire",
                 "--timeout",
                 std::to_string(start.timeout_s),
                 "--take-orders",
                 folder,
                 "--ranks",
                 std::to_string(start.num_ranks),
                 "--transport",
                 start.transport,
                 "--algorithm",
                 start.algorithm};
  if (start.is_any_order) words.push_back("--any-order");
  return words;
}

/// A port that nobody used a moment ago. On another host than this one it is as good a guess as
/// any.
int free_port() {
  return transport::local_address(transport::listen_on({.host = "127.0.0.1", .port = 0})).port;
}

/// Whether a contestant is ours with an algorithm forced.
bool is_algorithm(const std::string& name) {
  return collectives::parse_algorithm(name).has_value();
}

/// One process, which starts the ranks; behind `enter` one a rank, as another launcher starts them.
std::vector<Command> own_commands(const std::string& folder, const RankStart& start) {
  const Words words = own_words(folder, start);
  const std::string transport =
      "TRIREME_TRANSPORT=" + (start.transport == "shm" ? "auto" : start.transport);
  if (start.enter.empty()) return {{words, {transport}}};
  const std::string port = std::to_string(free_port());
  std::vector<Command> commands;
  for (int rank = 0; rank < start.num_ranks; ++rank) {
    commands.push_back(
        {entered(start, rank, words),
         {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(start.num_ranks),
          "MASTER_ADDR=" + start.store_host, "MASTER_PORT=" + port, transport}});
  }
  return commands;
}

std::vector<Command> gloo_commands(const std::string& folder, const RankStart& start) {
  std::vector<Command> commands;
  for (int rank = 0; rank < start.num_ranks; ++rank) {
    const Words words = {program_of("gloo"), folder, std::to_string(rank),
                         std::to_string(start.num_ranks)};
    commands.push_back({entered(start, rank, words), {}});
  }
  return commands;
}

/// What Open MPI starts its daemons with, as it would ssh: `FILE HOST WORD..`; HOST is "rank" and a
/// number. Each gets a host name of its own, for Open MPI shares memory where names are the same.
std::string write_mpi_agent(const std::string& folder, const RankStart& start) {
  const std::string file = folder + "/mpi_agent";
  std::filesystem::create_directories(folder);
  const std::string enter = with_rank(start.enter, "${0#rank}");
  write_file_atomically(
      file, "#!/bin/sh\nhost=$1\nshift\nexec unshare --uts sh -c 'hostname \"$0\"; exec " + enter +
                " sh -c \"$1\"' \"$host\" \"$*\"\n");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file;
}

std::vector<Command> mpi_commands(const std::string& folder, const RankStart& start) {
  Words words = {std::string(kMpirun), "--allow-run-as-root", "--oversubscribe", "-n",
                 std::to_string(start.num_ranks)};
  if (is_oversubscribed(start)) words.insert(words.end(), {"--mca", "mpi_yield_when_idle", "1"});
  if (!start.enter.empty()) {
    std::string hosts = "rank0";
    for (int rank = 1; rank < start.num_ranks; ++rank) hosts += ",rank" + std::to_string(rank);
    words.insert(words.end(),
                 {"--host", hosts, "--mca", "plm_rsh_agent", write_mpi_agent(folder, start),
                  "--mca", "plm_rsh_no_tree_spawn", "1"});
    words = entered(start, 0, words);
  }
  words.insert(words.end(), {program_of("mpi"), folder});
  return {{words, {}}};
}

}  // namespace

void check_peer(const std::string& peer) {
  if (is_algorithm(peer)) return;
  if (peer != "gloo" && peer != "mpi") {
    throw Error(ErrorKind::kInvalidArgument,
                "--against knows gloo, mpi and our own algorithms, not '" + peer + "'");
  }
  const bool is_there = access(program_of(peer).c_str(), X_OK) == 0;
  if (is_there && (peer != "mpi" || access(std::string(kMpirun).c_str(), X_OK) == 0)) return;
  const std::string packages = peer == "gloo" ? "libgloo-dev" : "openmpi-bin libopenmpi-dev";
  throw Error(ErrorKind::kUnavailable,
              "no " + program_of(peer) + (peer == "mpi" ? " with its mpirun" : "") +
                  ": install the Debian packages " + packages +
                  ", then `./dev bench wire` configures anew and builds it");
}

std::unique_ptr<Contestant> start_contestant(const std::string& name,
                                             const std::filesystem::path& folder,
                                             const RankStart& start) {
  const std::filesystem::path own = folder / name;
  if (is_algorithm(name)) {
    RankStart forced = start;
    forced.algorithm = name;
    return std::make_unique<Contestant>(name, own, start.num_ranks, own_commands(own, forced));
  }
  const auto make = name == "ours" ? own_commands : name == "gloo" ? gloo_commands : mpi_commands;
  return std::make_unique<Contestant>(name, own, start.num_ranks, make(own, start));
}

std::string describe_contestant(const std::string& name, const RankStart& start) {
  if (name == "gloo") return "gloo: torch's ProcessGroupGloo over TCP, 2 threads a rank";
  if (name == "mpi") {
    return std::string("mpi: Open MPI with its defaults") +
           (is_oversubscribed(start) ? "; more ranks than cores, so mpi_yield_when_idle is 1" : "");
  }
  if (is_algorithm(name)) return name + ": ours with this algorithm wherever it can be taken";
  return "ours: transport " + start.transport + ", algorithm " + start.algorithm;
}

}  // namespace trireme::bench
