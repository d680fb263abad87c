#include "trireme/base/error.h"
#include "trireme/wire/collectives/tuner.h"

namespace trireme::collectives {
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
  const Json body = read_document(path, kCostsDocument);
  try {
    return costs_from_json(body);
  } catch (const Error& error) {
    throw Error(error.kind(), "'" + path.string() + "': " + error.message());
  }
}

}  // namespace trireme::collectives
