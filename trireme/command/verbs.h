#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/environment.h"
#include "trireme/base/json.h"
#include "trireme/command_line.h"
#include "trireme/launch/connected_world.h"
#include "trireme/session.h"

namespace trireme::command {

/// What every verb shares. A verb's file adds its options to a sub-command and returns what runs
/// it: parse, one call of the library, print.
struct Context {
  const std::map<std::string, Recipe>& recipes;
  std::span<const char* const> argv;  ///< The whole command line.
  Environment environment;
  std::string model;  ///< --model
  std::uint64_t seed = 0;
  bool json = false;
  int timeout_s = 300;                           ///< --timeout, of every wait for another rank.
  BatchSizes sizes = BatchSizes::kAnyElseExact;  ///< --record-at
  Precision precision = Precision::kF32;         ///< --precision

  /// The workload that --model names, or the only one. kInvalidArgument where there is no such one.
  MakeWorkload workload() const { return with_precision(recipe().second.make, precision); }

  /// Its name.
  const std::string& model_name() const { return recipe().first; }

 private:
  const std::pair<const std::string, Recipe>& recipe() const;
};

/// Runs `body` as one rank of a world: with null where there is only this process; with this rank's
/// world where the environment says that this is one of several. Else starts `num_ranks` processes
/// of this command line, for each of which the latter holds.
///
/// A rank that throws takes the others with it: they end with the same error.
int run_ranks(const Context& context, int num_ranks,
              const std::function<int(launch::ConnectedWorld*)>& body);

/// The same in the public form; where there is only this process, its world has one rank.
int run_in_world(const Context& context, int num_ranks, const std::function<int(World&)>& body);

/// In a world of this process alone, whatever the environment says.
int run_alone(const Context& context, const std::function<int(World&)>& body);

/// A verb's body; returns the exit code.
using Body = std::function<int()>;

Body add_record(CLI::App& app, Context& context);
Body add_profile(CLI::App& app, Context& context);
Body add_profile_data(CLI::App& app, Context& context);
Body add_topology(CLI::App& app, Context& context);
Body add_partition(CLI::App& app, Context& context);
Body add_shard(CLI::App& app, Context& context);
Body add_simulate(CLI::App& app, Context& context);
Body add_explain(CLI::App& app, Context& context);
Body add_plan(CLI::App& app, Context& context);
Body add_validate(CLI::App& app, Context& context);
Body add_train(CLI::App& app, Context& context);
Body add_follow(CLI::App& app, Context& context);
Body add_export(CLI::App& app, Context& context);
Body add_verify(CLI::App& app, Context& context);
Body add_report(CLI::App& app, Context& context);
Body add_show(CLI::App& app, Context& context);
Body add_launch(CLI::App& app, Context& context);
Body add_doctor(CLI::App& app, Context& context);

/// --plan FILE, or --batch, --microbatch, --lanes, --cut-at and their like in its place.
struct PlanArguments {
  std::string file;
  int ranks = 0;  ///< --ranks; 0: as many as the plan has.
  PlanOptions options;

  void add_to(CLI::App& app, bool with_file);

  /// The plan of the file; nothing where there is none.
  std::optional<Plan> given() const;

  /// Samples per microbatch: the plan's, or those of --microbatch.
  std::int64_t microbatch() const;

  /// Ranks that the plan needs.
  int num_ranks() const;

  /// Throws kInvalidArgument, or what reading the file throws, for what is wrong whatever the model.
  void check() const;

  /// kInvalidArgument where --ranks says another number than the plan's.
  void check_ranks(const Plan& plan) const;
};

/// Throws kInvalidArgument: the plan has `expected` ranks, and --ranks says `given`.
[[noreturn]] void refuse_ranks(std::int64_t expected, std::int64_t given);

/// Standard output: `json` where it was asked for, else `text`.
void print(const Context& context, const Json& json, const std::string& text);

}  // namespace trireme::command
