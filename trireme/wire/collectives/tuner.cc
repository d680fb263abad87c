#include "trireme/wire/collectives/tuner.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "trireme/base/load_document.h"
#include "trireme/error.h"
#include "trireme/wire/collectives/eligible.h"
#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {
namespace {

double bytes_of(const Description& description) {
  return static_cast<double>(description.count) *
         static_cast<double>(size_bytes(description.dtype));
}

}  // namespace

double predicted_seconds(Algorithm algorithm, const TunerTask& task, const Costs& costs) {
  check_eligible(algorithm, task.description, task.ranks_per_host);
  const Description& call = task.description;
  const bool has_reducers = call.operation == Collective::kAllReduce;
  const CostCase of{
      .operation = call.operation,
      .n = static_cast<double>(call.group_size),
      .g = static_cast<double>(task.ranks_per_host),
      .bytes = bytes_of(call),
      .s = has_reducers ? static_cast<double>(call.root) : 0,
      .partial_bytes =
          static_cast<double>(call.count) *
          static_cast<double>(size_bytes(partial_dtype(call.dtype, call.reduce, call.order)))};
  return of.n <= 1 ? 0 : entry_of(algorithm).seconds(of, costs);
}

Algorithm cheapest(const TunerTask& task, const Costs& costs) {
  const std::vector<Algorithm> eligible =
      eligible_algorithms(task.description, task.ranks_per_host);
  const double chunk_bytes = bytes_of(task.description) / std::max(1U, task.description.group_size);
  // One-shot sends everything to everyone: that is no way out of small chunks where n is large.
  const bool has_other = std::ranges::any_of(eligible, [](Algorithm algorithm) {
    return algorithm != Algorithm::kTwoHop && algorithm != Algorithm::kOneShot;
  });
  const bool is_too_fine = has_other && task.description.operation == Collective::kAllReduce &&
                           chunk_bytes < kMinTwoHopChunkBytes;
  std::vector<Algorithm> candidates;
  for (const Algorithm algorithm : eligible) {
    if (algorithm != Algorithm::kTwoHop || !is_too_fine) candidates.push_back(algorithm);
  }
  if (candidates.empty()) check_eligible(Algorithm::kTwoHop, task.description);  // throws
  return *std::ranges::min_element(candidates, {}, [&](Algorithm algorithm) {
    return predicted_seconds(algorithm, task, costs);
  });
}

std::string to_text(const Costs& costs) {
  std::array<char, 96> text{};
  const auto line = [&text](const char* what, const LinkCosts& cost) {
    std::snprintf(text.data(), text.size(), "%-14s  %13.1f  %11.4f  ", what, cost.alpha_s * 1e6,
                  cost.beta_s_per_byte * 1e9);
    std::string line = text.data();
    std::snprintf(text.data(), text.size(), "%6.1f\n", 1e-9 / cost.beta_s_per_byte);
    return line + (cost.beta_s_per_byte > 0 ? text.data() : "     -\n");
  };
  return "network costs     us / message    ns / byte    GB/s\n" +
         line("between hosts", costs.network) + line("on a host", costs.local) +
         line("reducing", {.alpha_s = 0, .beta_s_per_byte = costs.gamma_s_per_byte});
}

std::string choices_text(const TunerTask& task, const Costs& costs) {
  const std::vector<Algorithm> eligible =
      eligible_algorithms(task.description, task.ranks_per_host);
  const auto padded = [](std::string text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
  };
  std::string table = padded("bytes", 12);
  for (const Algorithm algorithm : eligible) table += padded(std::string(to_text(algorithm)), 18);
  table += "  chosen\n";
  for (std::int64_t bytes = 1024; bytes <= std::int64_t{1} << 30; bytes *= 4) {
    TunerTask sized = task;
    sized.description.count = bytes / static_cast<std::int64_t>(size_bytes(task.description.dtype));
    table += padded(std::to_string(bytes), 12);
    for (const Algorithm algorithm : eligible) {
      std::array<char, 32> text{};
      const double us = predicted_seconds(algorithm, sized, costs) * 1e6;
      std::snprintf(text.data(), text.size(), "%.1f us", us);
      table += padded(text.data(), 18);
    }
    table += "  " + std::string(to_text(cheapest(sized, costs))) + "\n";
  }
  return table;
}

namespace {

double read_cost(const JsonField& field) {
  const double cost = field.real();
  if (!(cost >= 0 && cost < 1e9)) field.fail_expected("seconds, not negative");
  return cost;
}

Json link_to_json(const LinkCosts& link) {
  return {{"alpha_s", link.alpha_s}, {"beta_s_per_byte", link.beta_s_per_byte}};
}

LinkCosts link_from_json(const JsonField& field) {
  JsonObject object(field);
  LinkCosts link;
  link.alpha_s = read_cost(object.required("alpha_s"));
  link.beta_s_per_byte = read_cost(object.required("beta_s_per_byte"));
  object.finish();
  return link;
}

}  // namespace

Json to_json(const Costs& costs) {
  return {{"network", link_to_json(costs.network)},
          {"local", link_to_json(costs.local)},
          {"gamma_s_per_byte", costs.gamma_s_per_byte}};
}

Costs costs_from_json(const Json& body) {
  JsonObject object(JsonField(body, "network_costs"));
  Costs costs;
  costs.network = link_from_json(object.required("network"));
  costs.local = link_from_json(object.required("local"));
  costs.gamma_s_per_byte = read_cost(object.required("gamma_s_per_byte"));
  object.finish();
  return costs;
}

std::string save(const Costs& costs, const std::filesystem::path& path) {
  return write_document(path, kCostsDocument, to_json(costs));
}

Costs load_costs(const std::filesystem::path& path) {
  return load_document(path, kCostsDocument, costs_from_json);
}

}  // namespace trireme::collectives
