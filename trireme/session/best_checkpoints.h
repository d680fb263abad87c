#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trireme/base/document.h"
#include "trireme/session.h"

namespace trireme::session {

inline constexpr DocumentKind kBestDocument{"trireme.best", 1};

/// The evaluations of a run: which were best, of those that have a checkpoint, and whether they say that it has trained
/// enough. The same on every rank.
class BestCheckpoints {
 public:
  struct Kept {
    std::int64_t step = 0;
    double value = 0;  ///< Of the loss or metric.
    bool operator==(const Kept&) const = default;
  };

  /// options   say how many stay, and by what.
  explicit BestCheckpoints(const RunOptions& options)
      : most_(options.keep_best),
        by_(options.best_by),
        is_most_(options.best_is_most),
        patience_(options.patience),
        target_(options.target) {}

  /// Whether evaluations matter to a run with these options.
  bool is_wanted() const { return most_ > 0 || patience_ > 0 || target_; }

  /// An evaluation after `step` steps. Returns   why the run should stop, for people; empty: it need not.
  std::string see(std::int64_t step, double value);

  /// What an evaluation is judged by. kInvalidArgument where it has no loss or metric of that name, saying which it has.
  double value_of(const StepLosses& losses) const;

  /// Whether it is among the best. Not what is not finite; of two alike the first is better.
  bool takes(double value) const;

  /// The worst may go for it. A step that is there already has the new value.
  void add(std::int64_t step, double value);

  /// Best first.
  const std::vector<Kept>& kept() const { return kept_; }
  std::set<std::int64_t> steps() const;

  /// The form of `best.json` (docs/formats.md).
  std::string to_text() const;

  /// Takes those of a text; nothing where they were judged by something else.
  ///
  /// Returns   whether it was judged by the same.
  /// Errors    those of parse_document; kCorruptData, naming the field.
  bool take_text(const std::string& text, const std::string& origin);

  /// For a run that goes on from `step`, and has checkpoints of `steps`: leaves out all others, and later evaluations.
  void keep_only(std::int64_t step, const std::set<std::int64_t>& steps);

 private:
  bool is_better(double a, double b) const { return is_most_ ? a > b : a < b; }

  int most_;
  std::string by_;
  bool is_most_;
  int patience_;
  std::optional<double> target_;
  std::vector<Kept> kept_;
  std::vector<Kept> seen_;  ///< All evaluations, in order.
};

}  // namespace trireme::session
