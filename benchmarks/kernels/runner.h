#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/kernels/bounds.h"
#include "benchmarks/kernels/case.h"
#include "benchmarks/kernels/peer.h"
#include "trireme/base/json.h"

namespace trireme::kernels::bench {

/// What came of one contestant at one case.
struct Timing {
  std::string who;  ///< "ours", or a peer with its version.
  std::vector<double> ms;
  std::string problem;      ///< Why there are no times; empty where all is well.
  double difference = 0;    ///< Of ours from this peer's outputs, as Difference::largest.
  bool is_wrong = false;    ///< Beyond the case's tolerance, or could not be compared.
  bool has_failed = false;  ///< The peer is there, but did not do what it was asked for.
};

/// Ours first, then the peers that were asked for.
struct Row {
  CaseEntry entry;
  std::vector<Timing> timings;
};

struct RunnerOptions {
  int num_threads = 1;
  int rounds = 7;
  std::vector<std::string> peers;  ///< Asked for; "best" stands for each case's first.
  PeerProcess::Start peer_start;
  std::filesystem::path folder;  ///< For files, its own.
};

/// Times a case beside its peers, in turn. What a peer cannot do is said in its timing; one that is
/// wrong or fails has no times.
Row run_case(const CaseEntry& entry, const RunnerOptions& options);

double median(std::vector<double> values);

/// The smallest value that a share q of all does not exceed: of 5, the 95th percentile is the largest.
double quantile(std::vector<double> values, double q);

/// The table: a heading, then the lines of each row.
std::string heading(const Bounds& bounds, int num_threads);
std::string lines(const Row& row, const Bounds& bounds);
Json to_json(const std::vector<Row>& rows, const Bounds& bounds, int num_threads);

}  // namespace trireme::kernels::bench
