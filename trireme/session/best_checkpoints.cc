#include "trireme/session/best_checkpoints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
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
  Json checkpoints = Json::array();
  for (const Kept& one : kept_) checkpoints.push_back({{"step", one.step}, {"value", one.value}});
  return to_document_text(
      kBestDocument, {{"by", by_}, {"is_most", is_most_}, {"checkpoints", std::move(checkpoints)}});
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
  object.finish();
  if (by != by_ || is_most != is_most_) return false;
  for (const Kept& one : all) {
    if (takes(one.value)) add(one.step, one.value);
  }
  return true;
}

void BestCheckpoints::keep_only(const std::set<std::int64_t>& steps) {
  std::erase_if(kept_, [&](const Kept& one) { return !steps.contains(one.step); });
}

}  // namespace trireme::session
