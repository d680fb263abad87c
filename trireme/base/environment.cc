#include "trireme/base/environment.h"

#include <charconv>
#include <cstdlib>

#include "trireme/base/error.h"

namespace trireme {
namespace {

constexpr int kMaxPid = 1 << 22;  // of Linux

std::optional<std::string> process_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

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

std::string required(const VariableLookup& lookup, const std::string& name,
                     const std::string& because) {
  const std::optional<std::string> value = lookup(name);
  if (value && !value->empty()) return *value;
  throw Error(ErrorKind::kInvalidArgument, "environment variable " + name + " is not set, though " +
                                               because + " is; a launcher sets both");
}

int parse_number(const std::string& name, const std::string& text, int max) {
  int number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc{} && end == text.data() + text.size() && number >= 0 && number <= max) {
    return number;
  }
  throw Error(ErrorKind::kInvalidArgument, "environment variable " + name + ": '" + text +
                                               "' is no number from 0 to " + std::to_string(max));
}

int required_number(const VariableLookup& lookup, const std::string& name,
                    const std::string& because, int max) {
  return parse_number(name, required(lookup, name, because), max);
}

/// prefix   `TRIREME_` or nothing; `host` and `port` name the variables of the store.
RankEnvironment read_ranks(const VariableLookup& lookup, const std::string& prefix,
                           const std::string& host, const std::string& port) {
  constexpr int kMaxRanks = 1 << 20;
  const std::string rank = prefix + "RANK";
  const auto number = [&](const std::string& name, int max) {
    return required_number(lookup, name, rank, max);
  };
  RankEnvironment result{.rank = number(rank, kMaxRanks - 1),
                         .world_size = number(prefix + "WORLD_SIZE", kMaxRanks),
                         .store_host = required(lookup, host, rank),
                         .store_port = number(port, 65535)};
  if (result.rank < result.world_size) return result;
  throw Error(ErrorKind::kInvalidArgument,
              "environment variable " + rank + " is " + std::to_string(result.rank) + ", " +
                  prefix + "WORLD_SIZE is " + std::to_string(result.world_size) +
                  "; ranks count from 0");
}

/// Whether ranks may share memory.
bool parse_transport(const std::string& text) {
  if (text == "auto" || text == "tcp") return text == "auto";
  throw Error(ErrorKind::kInvalidArgument, "'" + text + "' is neither auto nor tcp");
}

bool is_set(const VariableLookup& lookup, const std::string& name) {
  const std::optional<std::string> value = lookup(name);
  return value && !value->empty();
}

}  // namespace

Environment read_environment() { return read_environment(process_variable); }

Environment read_environment(const VariableLookup& lookup) {
  Environment environment;
  read(lookup, "TRIREME_LOG", environment.log_level, parse_log_level);
  if (is_set(lookup, "TRIREME_PYTHON")) environment.python = lookup("TRIREME_PYTHON");
  if (is_set(lookup, "TRIREME_RANK")) {
    environment.ranks = read_ranks(lookup, "TRIREME_", "TRIREME_STORE_HOST", "TRIREME_STORE_PORT");
    environment.ranks->launcher = Launcher::kTrireme;
    environment.ranks->launcher_pid =
        required_number(lookup, "TRIREME_LAUNCHER_PID", "TRIREME_RANK", kMaxPid);
  } else if (is_set(lookup, "RANK")) {
    environment.ranks = read_ranks(lookup, "", "MASTER_ADDR", "MASTER_PORT");
    const auto agent = lookup("TORCHELASTIC_USE_AGENT_STORE");
    if (agent == "True") environment.ranks->launcher = Launcher::kTorchrun;
    environment.ranks->generation = lookup("TORCHELASTIC_RESTART_COUNT").value_or("0");
  }
  if (environment.ranks) {
    read(lookup, "TRIREME_TRANSPORT", environment.ranks->shares_memory, parse_transport);
  }
  return environment;
}

}  // namespace trireme
