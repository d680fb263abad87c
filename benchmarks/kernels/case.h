#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/kernels/tensors.h"

namespace trireme::kernels::bench {

/// A kernel with its inputs, ready to run.
class Case {
 public:
  virtual ~Case() = default;

  /// What peers are given.
  virtual const Tensors& inputs() const = 0;

  /// Once, with as many threads as it was made for. What is timed.
  virtual void run() = 0;

  /// What `outputs` tells about: once, before anything is timed. Where what is compared takes more
  /// than a run, it is made here.
  virtual void check() { run(); }

  /// What `check` has made, by the names that peers use.
  virtual Tensors outputs() const = 0;
};

/// What a case is made from.
struct CaseSetting {
  int num_threads = 1;
  std::filesystem::path folder;  ///< For files that the case and its peers read; its own.
};

/// A line of the table.
struct CaseEntry {
  std::string name;   ///< "kernel/variant", as peers know it.
  std::string shape;  ///< For people.
  double bytes = 0;   ///< That the best implementation would move to and from memory; 0: unknown.
  double flops = 0;   ///< That it would do; 0: bytes alone matter.

  /// Largest difference from a peer's outputs that is right (difference.h), and those of tensors
  /// that have one of their own. 0: equal.
  double tolerance = 0;
  std::map<std::string, double> tolerances = {};

  std::vector<std::string> peers;  ///< Best first.
  std::function<std::unique_ptr<Case>(const CaseSetting&)> make;
};

/// All, in the order of the table.
std::vector<CaseEntry> all_cases();

}  // namespace trireme::kernels::bench
