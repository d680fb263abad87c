#include "trireme/session/best_checkpoints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "trireme/error.h"

namespace trireme::session {

double BestCheckpoints::value_of(const StepLosses& losses) const {
  if (by_.empty()) return losses.total();
  std::vector<std::string> names;
  for (const LossTotal& loss : losses.losses) {
    if (loss.name == by_) return loss.mean();
    names.push_back(loss.name);
  }
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("--best-by {}: evaluations have {}", by_, fmt::join(names, ", ")));
}

std::string BestCheckpoints::see(std::int64_t step, double value) {
  std::erase_if(seen_, [&](const Kept& one) { return one.step >= step; });
  seen_.push_back({step, value});
  const std::string name = by_.empty() ? "loss" : by_;
  if (target_ && (value == *target_ || is_better(value, *target_))) {
    return fmt::format("the evaluation's {} is {:g}, and --target is {:g}", name, value, *target_);
  }
  double best = std::numeric_limits<double>::quiet_NaN();
  int since = 0;
  for (const Kept& one : seen_) {
    const bool is_first = std::isnan(best);
    since = is_first || is_better(one.value, best) ? 0 : since + 1;
    if (since == 0) best = one.value;
  }
  if (patience_ == 0 || since < patience_) return "";
  return fmt::format("{} evaluations in a row have no better {} than {:g}", since, name, best);
}

bool BestCheckpoints::takes(double value) const {
  if (most_ == 0 || !std::isfinite(value)) return false;
  return std::ssize(kept_) < most_ || is_better(value, kept_.back().value);
}

void BestCheckpoints::add(std::int64_t step, double value) {
  std::erase_if(kept_, [&](const Kept& one) { return one.step == step; });
  const auto worse =
      std::ranges::find_if(kept_, [&](const Kept& one) { return is_better(value, one.value); });
  kept_.insert(worse, {step, value});
  if (std::ssize(kept_) > most_) kept_.resize(static_cast<std::size_t>(most_));
}

std::set<std::int64_t> BestCheckpoints::steps() const {
  std::set<std::int64_t> steps;
  for (const Kept& one : kept_) steps.insert(one.step);
  return steps;
}

std::string BestCheckpoints::to_text() const {
  const auto list = [](const std::vector<Kept>& all) {
    Json json = Json::array();
    for (const Kept& one : all) {
      json.push_back({{"step", one.step}, {"value", real_to_json(one.value)}});
    }
    return json;
  };
  return to_document_text(kBestDocument, {{"by", by_},
                                          {"is_most", is_most_},
                                          {"checkpoints", list(kept_)},
                                          {"evaluations", list(seen_)}});
}

bool BestCheckpoints::take_text(const std::string& text, const std::string& origin) {
  const Json body = parse_document(kBestDocument, text, origin);
  JsonObject object(JsonField(body, origin));
  const std::string by = object.required("by").text();
  const bool is_most = object.required("is_most").boolean();
  const auto read = [](const JsonField& field) {
    JsonObject one(field);
    Kept kept{.step = one.required("step").integer(0), .value = one.required("value").real()};
    one.finish();
    return kept;
  };
  const std::vector<Kept> all = object.required("checkpoints").list(read);
  std::vector<Kept> seen = object.required("evaluations").list(read);
  object.finish();
  if (by != by_ || is_most != is_most_) return false;
  seen_ = std::move(seen);
  for (const Kept& one : all) {
    if (takes(one.value)) add(one.step, one.value);
  }
  return true;
}

void BestCheckpoints::keep_only(std::int64_t step, const std::set<std::int64_t>& steps) {
  std::erase_if(seen_, [&](const Kept& one) { return one.step > step; });
  std::erase_if(kept_, [&](const Kept& one) { return !steps.contains(one.step); });
}

}  // namespace trireme::session
