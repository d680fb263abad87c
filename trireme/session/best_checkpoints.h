#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trireme/base/document.h"
#include "trireme/session.h"

namespace trireme::session {

inline constexpr DocumentKind kBestDocument{"trireme.best", 1};

/// An evaluation of a run.
struct Judged {
  std::int64_t step = 0;  ///< Steps done.
  double value = 0;       ///< Of the loss or metric.
  bool operator==(const Judged&) const = default;
};

/// The file form `best.json` (docs/formats.md).
struct BestDocument {
  std::string by;  ///< A loss or metric of evaluations; empty: the step loss.
  bool is_most = false;
  std::vector<Judged> checkpoints;  ///< That stay, the best first.
  std::vector<Judged> evaluations;  ///< All, in order.
};

Json to_json(const BestDocument& document);

/// Errors   kCorruptData, naming the field.
BestDocument best_from_json(const Json& body, const std::string& origin);

/// Errors of read_document, too.
BestDocument load_best(const std::filesystem::path& path);

/// The checkpoints that stay, for people.
std::string show(const BestDocument& document);

/// The evaluations of a run: which were best, of those that have a checkpoint, and whether they say
/// that it has trained enough. The same on every rank.
class BestCheckpoints {
 public:
  /// options   say how many stay, and by what.
  explicit BestCheckpoints(const RunOptions& options)
      : most_(options.keep_best),
        patience_(options.patience),
        target_(options.target),
        now_{.by = options.best_by, .is_most = options.best_is_most} {}

  /// Whether evaluations matter to a run with these options.
  bool is_wanted() const { return most_ > 0 || patience_ > 0 || target_; }

  /// What an evaluation is judged by. kInvalidArgument where it has no loss or metric of that name,
  /// saying which it has.
  double value_of(const StepLosses& losses) const;

  /// An evaluation. Returns   why the run should stop, for people; empty: it need not.
  std::string see(const Judged& evaluation);

  /// Whether it is among the best. Not what is not finite; of two alike the first is better.
  bool takes(double value) const;

  /// Has a checkpoint now. The worst may go for it; one of that step already has the new value.
  void add(const Judged& evaluation);

  const BestDocument& document() const { return now_; }
  std::set<std::int64_t> steps() const;  ///< Of checkpoints that stay.

  /// For a run that goes on from `step`: takes what it had until then. Returns   false where that was
  /// judged by something else: nothing is taken.
  bool resume(const BestDocument& before, std::int64_t step);

 private:
  bool is_better(double a, double b) const { return now_.is_most ? a > b : a < b; }

  int most_;
  int patience_;
  std::optional<double> target_;
  BestDocument now_;
};

}  // namespace trireme::session
