#include "benchmarks/wire/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/wire/compare.h"
#include "benchmarks/wire/contestants.h"
#include "benchmarks/wire/group_contender.h"
#include "benchmarks/wire/rank_loop.h"
#include "benchmarks/wire/report.h"
#include "trireme/base/file_lock.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"
#include "trireme/launch/run_ranks.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::bench {
namespace {

constexpr const char* kLock = "/tmp/trireme_benchmark.lock";  // that of benchmarks/machine.h

struct WireOptions {
  std::string operations = "all_reduce,reduce_scatter,all_gather,all_to_all,broadcast,barrier";
  std::string bytes = "4..256MiB";
  std::string dtype = "f32";
  bool is_registered = false;
  bool is_unlocked = false;
  bool is_overlapped = false;
  bool is_bounded = false;
  std::vector<std::string> peers;
  int rounds = 5;
  std::string json_file;
  std::string orders;  ///< Folder of the pipes, in a rank; else empty.
  RankStart start;
};

/// A fresh folder that is removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "trireme-bench-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw_system_error("make the folder", name, errno);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void require_shared_memory(transport::Endpoint& endpoint) {
  if (endpoint.local_peers().count() + 1 == endpoint.world_size()) return;
  throw Error(ErrorKind::kUnavailable,
              "rank " + std::to_string(endpoint.rank()) +
                  " shares no memory with all others, as --transport shm wants; `trireme doctor` "
                  "says why, --transport auto goes on over tcp");
}

/// The ranks of our own contestant.
int take_orders_as_rank(const WireOptions& options, const launch::RankProgram& program) {
  return launch::run_ranks(program, options.start.num_ranks, [&](launch::ConnectedWorld* world) {
    const collectives::World all = world->world();
    if (options.start.transport == "shm") require_shared_memory(all.endpoint);
    std::vector<int> ranks(static_cast<std::size_t>(options.start.num_ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto order =
        options.start.is_any_order ? collectives::Order::kAny : collectives::Order::kCanonical;
    const auto algorithm = collectives::parse_algorithm(options.start.algorithm);
    collectives::Group group(all.endpoint, ranks,
                             {.name = "bench",
                              .deadline = program.deadline,
                              .order = order,
                              .costs = all.costs,
                              .algorithm = algorithm});
    std::optional<Forced> forced;
    if (algorithm) forced = {*algorithm, order};
    GroupContender contender(group, forced);
    take_orders(options.orders, contender);
    return 0;
  });
}

/// Algorithms are of messages; ranks that share memory send none.
void check_algorithms(const WireOptions& options) {
  const bool is_forced = options.start.algorithm != "auto" ||
                         std::ranges::any_of(options.peers, [](const std::string& peer) {
                           return collectives::parse_algorithm(peer).has_value();
                         });
  if (!is_forced || options.start.transport == "tcp" || !options.start.enter.empty()) return;
  throw Error(ErrorKind::kInvalidArgument,
              "ranks of one host share memory and need no algorithm; add --transport tcp");
}

void check(const WireOptions& options, const launch::RankProgram& program) {
  check_algorithms(options);
  if (program.environment.ranks) {
    throw Error(ErrorKind::kInvalidArgument,
                "this process is one of several ranks, and bench wire starts its ranks itself; "
                "behind --enter they run on other hosts");
  }
  if (options.start.transport == "shm" && !options.start.enter.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "ranks behind --enter are on other hosts, which share no memory; leave one of "
                "--transport shm and --enter out");
  }
  if (!options.json_file.empty()) check_writable(options.json_file);
  for (const std::string& peer : options.peers) check_peer(peer);
}

Contestants start_all(const WireOptions& options, const std::filesystem::path& folder) {
  Contestants contestants;
  std::vector<std::string> names = options.peers;
  names.insert(names.begin(), "ours");
  for (const std::string& name : names) {
    std::printf("%s\n", describe_contestant(name, options.start).c_str());
    contestants.push_back(start_contestant(name, folder, options.start));
  }
  return contestants;
}

/// What else the machine does.
void print_load(const WireOptions& options) {
  double load[3] = {-1, -1, -1};
  if (getloadavg(load, 3) != 3) load[0] = load[1] = load[2] = -1;
  std::printf("%d ranks, %d rounds; load before: %.2f %.2f %.2f\n", options.start.num_ranks,
              options.rounds, load[0], load[1], load[2]);
}

std::optional<FileLock> lock_machine(const WireOptions& options) {
  constexpr std::chrono::hours kMaxWait{1};
  if (options.is_unlocked) return std::nullopt;
  return FileLock(kLock, kMaxWait, [] { std::fprintf(stderr, "waiting for another benchmark\n"); });
}

int bench_wire(const WireOptions& options, const launch::RankProgram& program) {
  if (!options.orders.empty()) return take_orders_as_rank(options, program);
  check(options, program);
  const std::vector<Case> cases = make_cases({.operations = parse_operations(options.operations),
                                              .sizes = parse_sizes(options.bytes),
                                              .dtype = parse_dtype(options.dtype).value(),
                                              .is_registered = options.is_registered,
                                              .num_ranks = options.start.num_ranks});
  const auto lock = lock_machine(options);
  print_load(options);
  const Setting setting{.num_ranks = options.start.num_ranks,
                        .transport = options.start.transport,
                        .algorithm = options.start.algorithm,
                        .peers = options.peers,
                        .is_overlapped = options.is_overlapped,
                        .is_bounded = options.is_bounded};
  const TemporaryFolder folder;
  const Contestants contestants = start_all(options, folder.path());
  const CompareOptions compared{.rounds = options.rounds,
                                .is_overlapped = options.is_overlapped,
                                .is_bounded = options.is_bounded,
                                .deadline = program.deadline};
  std::fputs(heading(setting).c_str(), stdout);
  std::vector<Row> rows;
  bool is_right = true;
  for (const Case& one : cases) {
    rows.push_back({one, compare(one, contestants, compared)});
    is_right &= rows.back().ours().is_right();
    std::fputs(line(setting, rows.back()).c_str(), stdout);
    std::fflush(stdout);
  }
  for (const auto& contestant : contestants) contestant->stop();
  std::fputs(summary(setting, rows).c_str(), stdout);
  if (!options.json_file.empty()) {
    write_file_atomically(options.json_file, to_json(setting, rows).dump(2) + "\n");
  }
  return is_right ? 0 : 1;
}

std::vector<std::string> names_of_algorithms() {
  std::vector<std::string> names = {"auto"};
  for (int i = 0; i < collectives::kNumAlgorithms; ++i) {
    names.emplace_back(to_text(static_cast<collectives::Algorithm>(i)));
  }
  return names;
}

void add_wire_options(CLI::App& app, WireOptions& options) {
  app.add_option("--operations", options.operations, "Which, in this order")->capture_default_str();
  app.add_option("--bytes", options.bytes, "Sizes: FIRST..LAST by factors of 4, or a list")
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "Of the elements")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  app.add_option("--ranks", options.start.num_ranks, "Processes of each library")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  app.add_option("--timeout", options.start.timeout_s,
                 "Seconds that a rank waits for another at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--transport", options.start.transport,
                 "Of ours; ofi: libfabric, TRIREME_OFI_PROVIDER")
      ->check(CLI::IsMember({"auto", "tcp", "shm", "ofi"}))
      ->capture_default_str();
  app.add_option("--algorithm", options.start.algorithm, "Of ours")
      ->check(CLI::IsMember(names_of_algorithms()))
      ->capture_default_str();
  app.add_flag("--any-order", options.start.is_any_order,
               "Of ours: reductions in any order, not the canonical one");
  app.add_flag("--registered", options.is_registered, "Ours in memory told of beforehand");
  app.add_option(
         "--against", options.peers,
         "Other libraries to run in turn with ours: gloo, mpi; or ours with an algorithm forced")
      ->delimiter(',');
  app.add_option("--rounds", options.rounds, "Turns of each library at each case")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--overlap", options.is_overlapped,
               "Also what a call adds to a sleep of twice its time");
  app.add_flag("--bound", options.is_bounded,
               "Also the time over that in which all ranks read and write their buffers once");
  app.add_option("--json", options.json_file, "Also write the rows to this file");
  app.add_option("--enter", options.start.enter,
                 "Words before each rank's program, {rank} replaced: ip netns exec host{rank}");
  app.add_option("--store-host", options.start.store_host, "With --enter: address of rank 0's host")
      ->capture_default_str();
  app.add_flag("--unlocked", options.is_unlocked, "Do not wait for other benchmarks to end");
  app.add_option("--take-orders", options.orders)->group("");
}

}  // namespace

std::function<int()> add_command(CLI::App& app, const launch::RankProgram& program) {
  auto options = std::make_shared<WireOptions>();
  add_wire_options(app, *options);
  app.footer("Example: trireme bench wire --operations all_reduce --bytes 4..16MiB --against gloo");
  return [options, program = program]() mutable {
    program.deadline = std::chrono::seconds(options->start.timeout_s);
    return bench_wire(*options, program);
  };
}

}  // namespace trireme::bench
