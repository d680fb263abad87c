#include "trireme/command/command_line.h"

#include <c10/util/Exception.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/command/arguments.h"
#include "trireme/command/numbers.h"
#include "trireme/command/run_options.h"
#include "trireme/command/sibling_program.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/memory/torch_settings.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/launch/local_ranks.h"

namespace trireme {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kMisuse = launch::kMisuseCode;

int report(const char* text, int code) {
  std::fprintf(stderr, "trireme: %s\n", text);
  return code;
}

void add_batch_sizes(CLI::App& app, record::BatchSizes& batch_sizes) {
  const std::map<std::string, record::BatchSizes> names = {
      {"any", record::BatchSizes::kAny},
      {"exact", record::BatchSizes::kExact},
      {"auto", record::BatchSizes::kAnyElseExact}};
  app.add_option("--record-at", batch_sizes,
                 "Record for any batch size, or exactly for the microbatch size; auto: for that "
                 "only where the model's code differs with the batch size")
      ->transform(CLI::CheckedTransformer(names))
      ->option_text("{any,exact,auto}=auto");
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
  app.add_flag("--json", context.json, "Print the answer as JSON");
  app.add_option("--timeout", context.timeout_s, "Seconds that a rank waits for another at most")
      ->check(command::positive())
      ->capture_default_str();
  for (const auto& [name, recipe] : context.recipes) {
    if (recipe.add_options) recipe.add_options(app);
  }
}

/// Runs a verb; whatever it throws becomes a line and an exit code.
int run(const command::Body& body) {
  try {
    memory::apply_torch_settings();
    const int code = body();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return report("standard output took not all that was printed", kFailed);
  } catch (const Error& error) {
    return report(error.what(), error.kind() == ErrorKind::kInvalidArgument ? kMisuse : kFailed);
  } catch (const c10::Error& error) {
    return report(program::error_of(error).what(), kFailed);
  } catch (const std::bad_alloc&) {
    return report("out of memory", kFailed);
  } catch (const std::exception& error) {
    return report(error.what(), kFailed);
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv, const MakeWorkload& make) {
  return run_command_line(argc, argv, std::map<std::string, Recipe>{{"model", {make}}});
}

int run_command_line(int argc, const char* const* argv,
                     const std::map<std::string, Recipe>& recipes) {
  command::Context context{.recipes = recipes,
                           .argv = {argv, static_cast<std::size_t>(argc)},
                           .environment = {},
                           .model = {}};
  if (argc > 1 && is_sibling_verb(argv[1])) {
    return run([&]() -> int {
      command::become(std::string("trireme-") + argv[1], context.argv.subspan(2));
    });
  }
  CLI::App app("Trains a model that is too big or too slow for one device.",
               command::program_name(context.argv));
  command::set_up(app);
  app.require_subcommand(1);
  app.fallthrough();
  try {
    context.environment = read_environment();
  } catch (const Error& error) {
    return report(error.what(), kMisuse);
  }
  add_common_options(app, context);
  std::vector<std::pair<CLI::App*, command::Body>> verbs;
  const auto add = [&](const char* name, const char* what, auto add_verb) {
    CLI::App* verb = app.add_subcommand(name, what);
    verbs.emplace_back(verb, add_verb(*verb, context));
  };
  add("record", "Record the forward pass into graph files", command::add_record);
  add("profile", "Measure nodes, links and this machine", command::add_profile);
  add("partition", "Split a graph into stages and write the plan", command::add_partition);
  add("simulate", "Play a step of a plan through: time, memory, timeline", command::add_simulate);
  add("train", "Train, each stage of each replica in a process of its own", command::add_train);
  add("export", "Write the weights of a checkpoint as one safetensors file", command::add_export);
  add("verify", "Compare training under a plan with the uncut and the plain model, bit by bit",
      command::add_verify);
  add("report", "Make a page about a run", command::add_report);
  add("show", "Print any of these files for people", command::add_show);
  add("launch", "Start a program of your own as several ranks on this host", command::add_launch);
  for (const SiblingVerb& verb : kSiblingVerbs) app.add_subcommand(verb.name, verb.what);
  add("doctor",
      "Say what is wrong with this host, a store, a running rank, or the network between ranks",
      command::add_doctor);
  command::finish_set_up(app);
  try {
    command::parse_with_run(app, context.argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return report(command::explain(app, error).c_str(), kMisuse);
    return run([&] { return app.exit(error); });  // help, version
  } catch (const Error& error) {
    return report(error.what(), error.kind() == ErrorKind::kInvalidArgument ? kMisuse : kFailed);
  }
  for (const auto& [verb, body] : verbs) {
    if (verb->parsed()) return run(body);
  }
  return report("bench and evaluate come first: `trireme bench --help`", kMisuse);
}

}  // namespace trireme
