#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "trireme/arguments/numbers.h"
#include "trireme/command/verbs.h"
#include "trireme/wire/bootstrap/meeting.h"
#include "trireme/wire/collectives/flight/record.h"
#include "trireme/wire/doctor/doctor.h"

namespace trireme::command {
namespace {

constexpr int kFailed = 1;

struct DoctorVerbOptions {
  std::string store;       ///< HOST:PORT; empty: not asked for.
  std::string token_file;  ///< Of the store's job; empty: as the environment says.
  int process = 0;         ///< 0: not asked for.
  int ranks = 1;
};

Json to_json(const doctor::Finding& finding) {
  return {{"topic", finding.topic},
          {"verdict", doctor::to_text(finding.verdict)},
          {"found", finding.found},
          {"advice", finding.advice}};
}

Json to_json(const doctor::PeerPath& path) {
  return {{"rank", path.rank},
          {"host", path.host},
          {"path", path.path},
          {"round_trip_us", path.round_trip.count()},
          {"gb_per_s", path.gb_per_s}};
}

Json to_json(const collectives::FlightRecord& record) {
  Json operations = Json::array();
  for (const collectives::FlightOperation& operation : record.operations) {
    operations.push_back({{"sequence", operation.sequence},
                          {"operation", collectives::to_text(operation.operation)},
                          {"state", collectives::to_text(operation.state)},
                          {"count", operation.count},
                          {"bytes", operation.bytes},
                          {"text", collectives::to_text(operation)}});
  }
  return {{"rank", record.world_rank}, {"world_size", record.world_size},
          {"group", record.group},     {"group_rank", record.group_rank},
          {"process", record.process}, {"host", record.host},
          {"operations", operations}};
}

int show_flights(int process, const Context& context) {
  Json json = Json::array();
  std::string text;
  for (const collectives::FlightRecord& record : collectives::read_flights(process)) {
    json.push_back(to_json(record));
    text += (text.empty() ? "" : "\n") + collectives::to_text(record);
  }
  print(context, json, text);
  return 0;
}

int show_findings(const std::vector<doctor::Finding>& findings, const Context& context) {
  Json json = Json::array();
  for (const doctor::Finding& finding : findings) json.push_back(to_json(finding));
  print(context, json, doctor::to_text(findings));
  const bool is_broken = std::ranges::any_of(findings, [](const doctor::Finding& finding) {
    return finding.verdict == doctor::Verdict::kBroken;
  });
  return is_broken ? kFailed : 0;
}

int examine_world(launch::ConnectedWorld& world, const Context& context) {
  const std::vector<doctor::PeerPath> paths =
      doctor::measure_peers(world.world().endpoint, std::chrono::seconds(context.timeout_s));
  if (world.rank() != 0) return 0;
  Json json = Json::array();
  for (const doctor::PeerPath& path : paths) json.push_back(to_json(path));
  print(context, json, doctor::to_text(paths));
  return 0;
}

doctor::Finding examine_store(const DoctorVerbOptions& options, const Context& context) {
  const transport::Address address = transport::parse_address(options.store);
  const std::optional<RankEnvironment>& ranks = context.environment.ranks;
  const transport::Token token =
      options.token_file.empty()
          ? transport::token_of_store(context.environment, address.port, Logger(LogLevel::kOff))
          : transport::Token(transport::read_token_file(options.token_file));
  return doctor::examine_store(address, token, std::chrono::seconds(5),
                               ranks ? transport::host_of(*ranks) : "");
}

int examine(const DoctorVerbOptions& options, const Context& context) {
  if (options.process > 0) return show_flights(options.process, context);
  return run_ranks(context, options.ranks, [&](launch::ConnectedWorld* world) {
    if (world != nullptr) return examine_world(*world, context);
    std::vector<doctor::Finding> findings = doctor::examine_host();
    if (!options.store.empty()) findings.push_back(examine_store(options, context));
    return show_findings(findings, context);
  });
}

}  // namespace

Body add_doctor(CLI::App& app, Context& context) {
  auto options = std::make_shared<DoctorVerbOptions>();
  CLI::Option* store =
      app.add_option("--store", options->store, "HOST:PORT of a store that ranks do not reach");
  app.add_option("--token-file", options->token_file,
                 "Holds the token of the store's job; default: TRIREME_TOKEN or TRIREME_TOKEN_FILE")
      ->needs(store);
  CLI::Option* process =
      app.add_option("--pid", options->process, "Show the last operations of this rank's process")
          ->check(arguments::positive());
  CLI::Option* ranks = app.add_option("--ranks", options->ranks,
                                      "Start so many and measure the network links between them")
                           ->check(arguments::positive());
  process->excludes(store)->excludes(ranks);
  app.footer("Example: trireme doctor --ranks 4; under a launcher its ranks are measured");
  return [options, &context] { return examine(*options, context); };
}

}  // namespace trireme::command
