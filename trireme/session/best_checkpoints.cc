#include "trireme/session/best_checkpoints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "trireme/error.h"

namespace trireme::session {
namespace {

Json list_json(const std::vector<Judged>& list) {
  Json json = Json::array();
  for (const Judged& one : list) {
    json.push_back({{"step", one.step}, {"value", real_to_json(one.value)}});
  }
  return json;
}

Judged judged_from_json(const JsonField& field) {
  JsonObject object(field);
  const Judged one{.step = object.required("step").integer(0),
                   .value = object.required("value").real()};
  object.finish();
  return one;
}

std::string name_of(const std::string& by) { return by.empty() ? "loss" : by; }

}  // namespace

Json to_json(const BestDocument& document) {
  return {{"by", document.by},
          {"is_most", document.is_most},
          {"checkpoints", list_json(document.checkpoints)},
          {"evaluations", list_json(document.evaluations)}};
}

BestDocument best_from_json(const Json& body, const std::string& origin) {
  JsonObject object(JsonField(body, origin));
  BestDocument document{.by = object.required("by").text(),
                        .is_most = object.required("is_most").boolean(),
                        .checkpoints = object.required("checkpoints").list(judged_from_json),
                        .evaluations = object.required("evaluations").list(judged_from_json)};
  object.finish();
  return document;
}

BestDocument load_best(const std::filesystem::path& path) {
  return best_from_json(read_document(path, kBestDocument), path.string());
}

std::string show(const BestDocument& document) {
  std::string text = fmt::format("{} evaluations, by {}, {} is best\n", document.evaluations.size(),
                                 name_of(document.by), document.is_most ? "the most" : "the least");
  for (const Judged& one : document.checkpoints) {
    text += fmt::format("  checkpoint of step {}: {:g}\n", one.step, one.value);
  }
  return text;
}

double BestCheckpoints::value_of(const StepLosses& losses) const {
  if (now_.by.empty()) return losses.total();
  std::vector<std::string> names;
  for (const LossTotal& loss : losses.losses) {
    if (loss.name == now_.by) return loss.mean();
    names.push_back(loss.name);
  }
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("--best-by {}: evaluations have {}", now_.by, fmt::join(names, ", ")));
}

std::string BestCheckpoints::see(const Judged& evaluation) {
  std::vector<Judged>& seen = now_.evaluations;
  std::erase_if(seen, [&](const Judged& one) { return one.step == evaluation.step; });
  seen.push_back(evaluation);
  if (target_ && !is_better(*target_, evaluation.value) && !std::isnan(evaluation.value)) {
    return fmt::format("the evaluation's {} is {:g}, and --target is {:g}", name_of(now_.by),
                       evaluation.value, *target_);
  }
  auto best = seen.begin();
  for (auto one = seen.begin(); one != seen.end(); ++one) {
    if (is_better(one->value, best->value) || std::isnan(best->value)) best = one;
  }
  const auto since = std::distance(best, seen.end()) - 1;
  if (patience_ == 0 || since < patience_) return "";
  return fmt::format("{} evaluations in a row have no better {} than {:g}", since, name_of(now_.by),
                     best->value);
}

bool BestCheckpoints::takes(double value) const {
  if (most_ == 0 || !std::isfinite(value)) return false;
  const auto& kept = now_.checkpoints;
  return std::ssize(kept) < most_ || is_better(value, kept.back().value);
}

void BestCheckpoints::add(const Judged& evaluation) {
  std::vector<Judged>& kept = now_.checkpoints;
  std::erase_if(kept, [&](const Judged& one) { return one.step == evaluation.step; });
  kept.insert(std::ranges::find_if(
                  kept, [&](const Judged& one) { return is_better(evaluation.value, one.value); }),
              evaluation);
  if (std::ssize(kept) > most_) kept.resize(static_cast<std::size_t>(most_));
}

std::set<std::int64_t> BestCheckpoints::steps() const {
  std::set<std::int64_t> steps;
  for (const Judged& one : now_.checkpoints) steps.insert(one.step);
  return steps;
}

bool BestCheckpoints::resume(const BestDocument& before, std::int64_t step) {
  if (before.by != now_.by || before.is_most != now_.is_most) return false;
  for (const Judged& one : before.evaluations) {
    if (one.step <= step) now_.evaluations.push_back(one);
  }
  for (const Judged& one : before.checkpoints) {
    if (one.step <= step && takes(one.value)) add(one);
  }
  return true;
}

}  // namespace trireme::session
