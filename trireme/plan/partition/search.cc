#include "trireme/plan/partition/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "trireme/plan/partition/balance.h"
#include "trireme/plan/partition/chain.h"
#include "trireme/plan/partition/range_cost.h"

namespace trireme::partition {
namespace {

constexpr int kMaxTightenings = 6;
/// Moves go by every distance up to this, then by ever larger ones; less where ranks share cores.
constexpr int kNear = 40, kNearCrowded = 6;
/// Starts from which moves are tried.
constexpr std::size_t kMaxClimbs = 4, kMaxShortClimbs = 8;
/// Powers by which starts spread their cuts.
constexpr std::array kSpreads = {1.0, 0.6, 1.6, 0.3, 3.0};
/// Two cuts are put anywhere between their neighbours where there are at most so many places.
constexpr std::ptrdiff_t kMostPlaces = 120;
/// Pipelines up to this long move blocks of more than two cuts.
constexpr std::size_t kShort = 12;
/// A start that is further from the incumbent than this does not reach it.
constexpr double kFar = 1.3;
/// Likewise the best start where ranks share cores: cores are busy whatever the cuts.
constexpr double kFarCrowded = 1.025;
/// Parts of what moves may cost that each climb, and the best ones once more, may spend there.
constexpr std::int64_t kCrowdedPart = 6, kBestCrowdedPart = 2;
constexpr std::size_t kBestCrowded = 2;
/// Parts of the allowed slowdown that the slowest stage may take, tried in turn.
constexpr std::array kSlowdownParts = {1.0, 0.75, 0.5, 0.25, 0.0};

}  // namespace

Search::Search(const Problem& problem, const Setting& setting, const SearchEffort& effort)
    : problem_(problem),
      setting_(setting),
      effort_(effort),
      judge_(problem, setting),
      places_(setting.planned),
      rules_(setting.planned, problem.options.cuts, problem.options.stage_of, problem.num_stages) {}

std::optional<Search::Found> Search::find(const Goal& goal, const std::vector<Cuts>& starts,
                                          const std::optional<Score>& incumbent) {
  judge_.begin(goal);
  if (!rules_.is_possible()) return std::nullopt;
  if (problem_.options.balance != Balance::kSearch) return balanced();
  if (places_.num_partitions(problem_.num_stages) * static_cast<double>(judge_.price()) <=
      static_cast<double>(effort_.exhaustive)) {
    return try_all();
  }
  std::vector<Cuts> all = this->starts(goal);
  std::copy_if(starts.begin(), starts.end(), std::back_inserter(all),
               [this](const Cuts& cuts) { return suits(cuts); });
  std::vector<Found> found;
  for (const Cuts& cuts : all) {
    const bool is_known = std::any_of(found.begin(), found.end(),
                                      [&](const Found& other) { return other.cuts == cuts; });
    if (!is_known) found.push_back(judge_.quickly_scored(cuts));
  }
  if (found.empty()) return std::nullopt;
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.score < b.score; });
  Found best = found.front();
  const bool is_short = static_cast<std::size_t>(problem_.num_stages) <= kShort;
  const std::size_t num_climbs = std::min(is_short ? kMaxShortClimbs : kMaxClimbs, found.size());
  const auto is_far = [&](const Score& score, double far) {
    return goal.objective == Objective::kSpeed && incumbent &&
           score.excess_bytes >= incumbent->excess_bytes &&
           score.primary > far * incumbent->primary;
  };
  const bool is_crowded = judge_.is_crowded();
  std::size_t num_climbed = 0;
  if (!is_crowded || !is_far(best.score, kFarCrowded)) {
    for (; num_climbed < num_climbs && !is_far(found[num_climbed].score, kFar); ++num_climbed) {
      Found& one = found[num_climbed];
      improve(one, is_crowded ? kCrowdedPart * kMaxClimbs : kMaxClimbs);
      if (judge_.is_less(one, best)) best = one;
    }
  }
  if (is_crowded) climb_on({found.begin(), found.begin() + num_climbed}, best);
  best.score = judge_.score(best.cuts);
  return best;
}

/// Of what short climbs have found, from the best.
void Search::climb_on(std::vector<Found> climbed, Found& best) {
  std::ranges::stable_sort(climbed, {}, &Found::score);
  for (std::size_t i = 0; i < std::min(kBestCrowded, climbed.size()); ++i) {
    improve(climbed[i], kBestCrowdedPart * kMaxClimbs);
    if (judge_.is_less(climbed[i], best)) best = climbed[i];
  }
}

std::optional<double> Search::step_us(const Cuts& cuts) {
  if (!suits(cuts)) return std::nullopt;
  return judge_.step_us(cuts);
}

std::optional<Search::Found> Search::balanced() {
  if (std::ssize(places_.all()) + 1 < problem_.num_stages) return std::nullopt;
  const Cuts cuts = balanced_cuts(setting_.planned, problem_.profile,
                                  {.balance = problem_.options.balance,
                                   .num_stages = problem_.num_stages,
                                   .objective = problem_.options.objective});
  return Found{cuts, judge_.score(cuts)};
}

std::optional<Search::Found> Search::try_all() {
  std::optional<Found> best;
  places_.for_each_partition(problem_.num_stages, [&](const Cuts& cuts) {
    if (!rules_.keep(cuts)) return;
    if (!best) {
      best = Found{cuts, judge_.score(cuts)};
    } else if (const std::optional<Score> score = judge_.better(cuts, *best)) {
      best = Found{cuts, *score};
    }
  });
  if (best) best->score = judge_.score(best->cuts);
  return best;
}

std::vector<Search::Cuts> Search::starts(const Goal& goal) {
  std::vector<Cuts> starts = fastest();
  for (const double power : kSpreads) {
    if (Cuts cuts = spread_cuts(power); suits(cuts)) starts.push_back(std::move(cuts));
  }
  if (goal.objective == Objective::kMemory) {
    // The slowest stage alone is no step: limits of several lengths are tried.
    const double m = static_cast<double>(problem_.num_microbatches());
    for (const double part : kSlowdownParts) {
      const double allowed = goal.max_step_us / (m + problem_.num_stages - 1);
      if (auto cuts = least_memory(allowed * (1 + part))) starts.push_back(*std::move(cuts));
    }
  }
  const bool has_fitting = std::any_of(starts.begin(), starts.end(), [&](const Cuts& cuts) {
    return judge_.quickly_scored(cuts).score.excess_bytes <= 0;
  });
  if (!has_fitting) {
    if (auto cuts = least_memory(kUnlimited)) starts.push_back(*std::move(cuts));
  }
  return starts;
}

/// About as many places in each stage where `power` is 1; more in the later ones where it is above.
Search::Cuts Search::spread_cuts(double power) const {
  Cuts cuts;
  const auto size = static_cast<double>(places_.all().size());
  for (int s = 1; s < problem_.num_stages; ++s) {
    const double part = std::pow(static_cast<double>(s) / problem_.num_stages, power);
    const auto place = static_cast<std::size_t>(size * part);
    if (place < places_.all().size()) cuts.push_back(places_.all()[place]);
  }
  return cuts;
}

/// The DP's cuts. Where a stage does not fit after all, its limit is lowered by what it exceeds and
/// the DP runs again.
std::vector<Search::Cuts> Search::fastest() {
  RangeCost ranges(setting_.planned, problem_.profile, range_rules(problem_, setting_),
                   RangeGoal::kTime);
  std::vector<double> limits;
  for (int s = 0; s < problem_.num_stages; ++s) {
    limits.push_back(static_cast<double>(problem_.memory_limit(s)));
  }
  ChainRules rules = chain_rules(std::move(limits));
  std::vector<Cuts> found;
  for (int round = 0; round < kMaxTightenings; ++round) {
    const std::optional<ChainCuts> chain = cut_chain(ranges, rules);
    if (!chain) break;
    found.push_back(chain->cuts);
    const std::vector<std::int64_t> peaks = judge_.peak_bytes(chain->cuts);
    bool fits = true;
    for (int s = 0; s < problem_.num_stages; ++s) {
      const std::int64_t excess = peaks[s] - problem_.memory_limit(s);
      if (excess <= 0) continue;
      fits = false;
      rules.limits[s] -= static_cast<double>(excess);
    }
    if (fits) break;
  }
  return found;
}

std::optional<Search::Cuts> Search::least_memory(double max_stage_us) {
  RangeCost ranges(setting_.planned, problem_.profile, range_rules(problem_, setting_),
                   RangeGoal::kMemory);
  const std::optional<ChainCuts> chain =
      cut_chain(ranges, chain_rules(std::vector<double>(
                            static_cast<std::size_t>(problem_.num_stages), max_stage_us)));
  if (!chain) return std::nullopt;
  return chain->cuts;
}

/// part   of the effort is spent: its inverse.
void Search::improve(Found& best, std::int64_t part) {
  const std::int64_t until = judge_.spent() + effort_.moves / part;
  do {
    move(best, until);
  } while (place_pairs(best, until));
}

bool Search::place_pairs(Found& best, std::int64_t until) {
  bool is_better = false;
  for (std::size_t c = 0; c + 2 < static_cast<std::size_t>(problem_.num_stages); ++c) {
    is_better = place_pair(best, c, until) || is_better;
  }
  return is_better;
}

/// Cuts `first` and the next one, anywhere between their neighbours.
bool Search::place_pair(Found& best, std::size_t first, std::int64_t until) {
  const int after = first == 0 ? 0 : best.cuts[first - 1];
  const int before = first + 2 == best.cuts.size() ? static_cast<int>(places_.allowed().size()) - 1
                                                   : best.cuts[first + 2];
  const auto begin = std::upper_bound(places_.all().begin(), places_.all().end(), after);
  const auto end = std::lower_bound(begin, places_.all().end(), before);
  if (end - begin > kMostPlaces) return false;
  bool is_better = false;
  Cuts cuts = best.cuts;
  for (auto a = begin; a != end; ++a) {
    for (auto b = a + 1; b < end && judge_.spent() < until; ++b) {
      cuts[first] = *a;
      cuts[first + 1] = *b;
      if (!rules_.keep(cuts)) continue;
      const std::optional<Score> score = judge_.better(cuts, best);
      if (!score) continue;
      best = {cuts, *score};
      is_better = true;
    }
  }
  return is_better;
}

void Search::move(Found& best, std::int64_t until) {
  const std::vector<CutMove> moves = this->moves();
  std::size_t at = 0, num_failed = 0;
  while (num_failed < moves.size() && judge_.spent() < until) {
    const std::optional<Cuts> cuts = places_.moved(best.cuts, moves[at]);
    const bool is_one = cuts && rules_.keep(*cuts);
    if (const auto score = is_one ? judge_.better(*cuts, best) : std::nullopt) {
      best = {*cuts, *score};
      num_failed = 0;
      continue;  // The same move may pay again.
    }
    ++num_failed;
    at = (at + 1) % moves.size();
  }
}

std::vector<CutMove> Search::moves() const {
  std::vector<int> distances;
  const int furthest = static_cast<int>(places_.all().size());
  const int near = judge_.is_crowded() ? kNearCrowded : kNear;
  for (int d = 1; d < furthest; d = d < near ? d + 1 : d + d / (judge_.is_crowded() ? 2 : 4)) {
    distances.push_back(d);
  }
  const auto num_cuts = static_cast<std::size_t>(problem_.num_stages) - 1;
  std::vector<std::size_t> lengths = {1, 2};
  if (num_cuts <= kShort) {
    for (std::size_t length = 3; length <= num_cuts; ++length) lengths.push_back(length);
  }
  std::vector<CutMove> moves;
  for (std::size_t c = 0; c < num_cuts; ++c) {
    for (const int distance : distances) {
      for (const int signed_distance : {-distance, distance}) {
        for (const std::size_t length : lengths) {
          if (c + length <= num_cuts) moves.push_back({c, c + length - 1, signed_distance});
        }
      }
    }
  }
  return moves;
}

ChainRules Search::chain_rules(std::vector<double> limits) const {
  return {places_.allowed(), rules_.required(), std::move(limits), rules_.windows()};
}

/// Whether the cuts are ones of this problem.
bool Search::suits(const Cuts& cuts) const {
  return static_cast<int>(cuts.size()) + 1 == problem_.num_stages && rules_.keep(cuts) &&
         std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) == cuts.end() &&
         std::all_of(cuts.begin(), cuts.end(), [this](int cut) {
           return cut > 0 && cut + 1 < static_cast<int>(places_.allowed().size()) &&
                  places_.allowed()[cut];
         });
}

}  // namespace trireme::partition
