#include "trireme/command_line.h"

#include <c10/util/Exception.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/arguments/numbers.h"
#include "trireme/arguments/parse.h"
#include "trireme/arguments/program.h"
#include "trireme/command/run_options.h"
#include "trireme/command/sibling_program.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/error.h"

namespace trireme {
namespace {

void add_batch_sizes(CLI::App& app, BatchSizes& batch_sizes) {
  const std::map<std::string, BatchSizes> names = {{"any", BatchSizes::kAny},
                                                   {"exact", BatchSizes::kExact},
                                                   {"auto", BatchSizes::kAnyElseExact}};
  app.add_option("--record-at", batch_sizes,
                 "Record for any batch size, or exactly for the microbatch size; auto: for that "
                 "only where the model's code differs with the batch size")
      ->transform(CLI::CheckedTransformer(names))
      ->option_text("{any,exact,auto}=auto");
}

void add_precision(CLI::App& app, Precision& precision) {
  const std::map<std::string, Precision> names = {
      {"f32", Precision::kF32}, {"bf16", Precision::kBf16}, {"f16", Precision::kF16}};
  app.add_option("--precision", precision,
                 "In which matrix products and convolutions are computed, as torch's autocast has "
                 "it; weights and sums of gradients stay f32")
      ->transform(CLI::CheckedTransformer(names))
      ->option_text("{f32,bf16,f16}=f32");
}

/// A verb that is a program of its own.
struct SiblingVerb {
  const char* name;
  const char* what;
};

constexpr std::array kSiblingVerbs = {
    SiblingVerb{"bench", "Time parts of the library beside others"},
    SiblingVerb{"evaluate", "Score what a model made, as reference implementations do"},
};

bool is_sibling_verb(const char* word) {
  return std::ranges::any_of(kSiblingVerbs,
                             [&](const auto& verb) { return word == std::string_view(verb.name); });
}

/// Options of every verb.
void add_common_options(CLI::App& app, command::Context& context) {
  app.set_config("--config", "", "Read options from a TOML file: `[train]`, `steps = 100`");
  app.set_version_flag("--version", "trireme " TRIREME_VERSION " with torch " TORCH_VERSION);
  app.add_option("--model", context.model, "Which of the registered models");
  app.add_option("--seed", context.seed, "Of weights, data order and random operators");
  add_batch_sizes(app, context.sizes);
  add_precision(app, context.precision);
  app.add_flag("--json", context.json, "Print the answer as JSON");
  app.add_option("--timeout", context.timeout_s, "Seconds that a rank waits for another at most")
      ->check(arguments::positive())
      ->capture_default_str();
  for (const auto& [name, recipe] : context.recipes) {
    if (recipe.add_options) recipe.add_options(app);
  }
}

using Verbs = std::vector<std::pair<CLI::App*, command::Body>>;

Verbs add_verbs(CLI::App& app, command::Context& context) {
  Verbs verbs;
  const auto add = [&](const char* name, const char* what, auto add_verb) {
    CLI::App* verb = app.add_subcommand(name, what);
    verbs.emplace_back(verb, add_verb(*verb, context));
  };
  add("record", "Record the forward pass into graph files", command::add_record);
  add("profile", "Measure nodes, links and this machine", command::add_profile);
  add("topology", "Find out where ranks run, and what joins them", command::add_topology);
  add("profile-data", "Measure what reading samples takes, part by part",
      command::add_profile_data);
  add("partition", "Split a graph into stages and write the plan", command::add_partition);
  add("shard", "Find which tensors are worth splitting over ranks", command::add_shard);
  add("simulate", "Play a step of a plan through: time, memory, timeline", command::add_simulate);
  add("explain", "Say what would make the steps of a plan, or of a run, faster",
      command::add_explain);
  add("plan", "Search layouts of a published model on published hosts", command::add_plan);
  add("validate", "Compare predicted steps with published training runs", command::add_validate);
  add("train", "Train, each stage of each replica in a process of its own", command::add_train);
  add("follow", "Evaluate the checkpoints of a run while it trains, on ranks of its own",
      command::add_follow);
  add("export", "Write the weights of a checkpoint as one safetensors file", command::add_export);
  add("verify", "Compare training under a plan with the uncut and the plain model, bit by bit",
      command::add_verify);
  add("report", "Make a page about a run, or its metrics for other tools", command::add_report);
  add("show", "Print any of these files for people", command::add_show);
  add("launch", "Start a program of your own as several ranks on this host", command::add_launch);
  for (const SiblingVerb& verb : kSiblingVerbs) app.add_subcommand(verb.name, verb.what);
  add("doctor",
      "Say what is wrong with this host, a store, a running rank, or the network between ranks",
      command::add_doctor);
  return verbs;
}

/// Runs the verb that was called; what torch throws becomes an Error.
int run_called(const Verbs& verbs) {
  const auto called =
      std::ranges::find_if(verbs, [](const auto& verb) { return verb.first->parsed(); });
  if (called == verbs.end()) {
    throw Error(ErrorKind::kInvalidArgument,
                "bench and evaluate come first: `trireme bench --help`");
  }
  try {
    memory::apply_torch_settings();
    return called->second();
  } catch (const c10::Error& error) {
    throw program::error_of(error);
  }
}

int run_words(std::span<const char* const> argv, const std::map<std::string, Recipe>& recipes) {
  if (argv.size() > 1 && is_sibling_verb(argv[1])) {
    command::become(std::string("trireme-") + argv[1], argv.subspan(2));
  }
  command::Context context{
      .recipes = recipes, .argv = argv, .environment = read_environment(), .model = {}};
  CLI::App app("Trains a model that is too big or too slow for one device.",
               arguments::program_name(argv));
  arguments::set_up(app);
  app.require_subcommand(1);
  app.fallthrough();
  add_common_options(app, context);
  const Verbs verbs = add_verbs(app, context);
  return arguments::run_program(
      app, argv, [&] { return run_called(verbs); }, command::parse_with_run);
}

}  // namespace

int run_command_line(int argc, const char* const* argv, const MakeWorkload& make) {
  return run_command_line(argc, argv, std::map<std::string, Recipe>{{"model", {make}}});
}

int run_command_line(int argc, const char* const* argv,
                     const std::map<std::string, Recipe>& recipes) {
  return arguments::run([&] { return run_words({argv, static_cast<std::size_t>(argc)}, recipes); });
}

}  // namespace trireme
