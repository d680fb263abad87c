#include "trireme/plan/partition/tree_balance.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace trireme::partition {
namespace {

constexpr int kTreeBisections = 60;

/// Elements [begin, end).
struct Run {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
};

/// Part `depth` of a module's name; empty where it has fewer.
std::string_view part_of(std::string_view module, int depth) {
  for (; depth > 0; --depth) {
    const std::size_t dot = module.find('.');
    if (dot == std::string_view::npos) return {};
    module.remove_prefix(dot + 1);
  }
  return module.substr(0, module.find('.'));
}

class TreeCutter {
 public:
  explicit TreeCutter(const WeighedModules& tree) : tree_(tree), before_({0}) {
    for (const double weight : tree.weights) before_.push_back(before_.back() + weight);
  }

  /// Adds the cuts within `run`, whose elements have the first `depth` parts of their modules in common.
  void part(const Run& run, int depth, int num_stages) {
    if (num_stages == 1) return;
    const std::vector<Run> children = children_of(run, depth);
    if (children.size() == 1) return part(run, depth + 1, num_stages);
    const std::vector<Run> runs = lightest_runs(children, num_stages);
    const std::vector<int> stages = deal_out(runs, num_stages);
    bool is_first = true;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      if (stages[r] == 0) continue;
      if (!is_first) cuts_.push_back(runs[r].begin);
      is_first = false;
      part(runs[r], depth, stages[r]);
    }
  }

  std::vector<int> cuts() && { return std::move(cuts_); }

 private:
  double weight(const Run& run) const { return before_[run.end] - before_[run.begin]; }

  std::vector<Run> children_of(const Run& run, int depth) const {
    std::vector<Run> children;
    std::string_view last;
    for (int e = run.begin; e < run.end; ++e) {
      const std::string_view part = part_of(tree_.modules[e], depth);
      if (children.empty() || part.empty() || part != last) children.push_back({e, e});
      children.back().end = e + 1;
      last = part;
    }
    return children;
  }

  /// Children filled in order into runs of at most that weight.
  std::vector<Run> filled(const std::vector<Run>& children, double most) const {
    std::vector<Run> runs;
    for (const Run& child : children) {
      if (runs.empty() || weight({runs.back().begin, child.end}) > most) {
        runs.push_back(child);
      } else {
        runs.back().end = child.end;
      }
    }
    return runs;
  }

  /// At most so many, the heaviest as light as can be; several.
  std::vector<Run> lightest_runs(const std::vector<Run>& children, int num_runs) const {
    const Run all{children.front().begin, children.back().end};
    double low = 0, high = weight(all);
    for (int i = 0; i < kTreeBisections; ++i) {
      const double middle = (low + high) / 2;
      (std::ssize(filled(children, middle)) <= num_runs ? high : low) = middle;
    }
    std::vector<Run> runs = filled(children, high);
    if (runs.size() > 1) return runs;
    // All weight is in one of them.
    runs.clear();
    const auto size = static_cast<int>(children.size()), most = std::min(num_runs, size);
    for (int r = 0; r < most; ++r) {
      runs.push_back({children[size * r / most].begin, children[size * (r + 1) / most - 1].end});
    }
    return runs;
  }

  std::vector<int> deal_out(const std::vector<Run>& runs, int num_stages) const {
    std::vector<int> stages(runs.size(), 0);
    for (int i = 0; i < num_stages; ++i) {
      // Of those that weigh nothing, the ones with fewest.
      std::pair largest{-1.0, 0};
      std::size_t at = 0;
      for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::pair quotient{weight(runs[r]) / (stages[r] + 1), -stages[r]};
        if (stages[r] == runs[r].size() || quotient <= largest) continue;
        largest = quotient;
        at = r;
      }
      ++stages[at];
    }
    return stages;
  }

  const WeighedModules& tree_;
  std::vector<double> before_;  ///< By element: weights of those before it.
  std::vector<int> cuts_;
};

}  // namespace

std::vector<int> tree_cuts(const WeighedModules& tree, int num_stages) {
  TreeCutter cutter(tree);
  cutter.part({0, static_cast<int>(tree.weights.size())}, 0, num_stages);
  return std::move(cutter).cuts();
}

}  // namespace trireme::partition
