#include "trireme/base/environment.h"

#include <cstdlib>

#include "trireme/error.h"

namespace trireme {
namespace {

/// Sets `field` to what `parse` makes of the variable `name`, if it is set and not empty.
template <typename Field, typename Parse>
void read(const VariableLookup& lookup, const std::string& name, Field& field, Parse parse) {
  const std::optional<std::string> value = lookup(name);
  if (!value || value->empty()) return;
  try {
    field = parse(*value);
  } catch (const Error& error) {
    throw Error(error.kind(), "environment variable " + name + ": " + error.message());
  }
}

bool is_set(const VariableLookup& lookup, const std::string& name) {
  const std::optional<std::string> value = lookup(name);
  return value && !value->empty();
}

std::optional<Isa> read_isa_limit(const VariableLookup& lookup) {
  std::optional<Isa> limit;
  read(lookup, "TRIREME_ISA", limit, parse_isa);
  return limit;
}

}  // namespace

std::optional<std::string> process_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<Isa> read_isa_limit() { return read_isa_limit(process_variable); }

RankEnvironment read_connections() { return read_connections(process_variable); }

Environment read_environment() { return read_environment(process_variable); }

Environment read_environment(const VariableLookup& lookup) {
  Environment environment;
  read(lookup, "TRIREME_LOG", environment.log_level, parse_log_level);
  if (is_set(lookup, "TRIREME_PYTHON")) environment.python = lookup("TRIREME_PYTHON");
  environment.isa_limit = read_isa_limit(lookup);
  environment.token = read_token(lookup);
  environment.ranks = read_ranks(lookup);
  return environment;
}

}  // namespace trireme
