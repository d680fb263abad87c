#include <memory>

#include "trireme/arguments/numbers.h"
#include "trireme/command/verbs.h"
#include "trireme/error.h"
#include "trireme/launch/launcher.h"

namespace trireme::command {
namespace {

struct LaunchVerbOptions {
  int num_ranks = 0;
  int grace_s = 5;
  std::string token_file;
  std::vector<std::string> command;
};

int run_launch(const LaunchVerbOptions& options, const Environment& environment) {
  if (environment.ranks) {
    throw Error(ErrorKind::kInvalidArgument,
                "this process is rank " + std::to_string(environment.ranks->rank) +
                    " of another launcher, which starts ranks itself; leave out 'trireme launch'");
  }
  return launch::launch({.num_ranks = options.num_ranks,
                         .program = options.command.front(),
                         .words = options.command,
                         .token_file = options.token_file,
                         .adopts_orphans = true,
                         .grace = std::chrono::seconds(options.grace_s)})
      .exit_code;
}

}  // namespace

Body add_launch(CLI::App& app, Context& context) {
  auto options = std::make_shared<LaunchVerbOptions>();
  app.add_option("-n,--ranks", options->num_ranks, "How many, on this host")
      ->required()
      ->check(arguments::positive());
  app.add_option("--grace", options->grace_s, "Seconds from the first failure to the end of all")
      ->check(arguments::not_negative())
      ->capture_default_str();
  app.add_option("--token-file", options->token_file,
                 "Holds the job's token, mode 0600; default: a random one");
  app.add_option("command", options->command, "Program and its arguments, after --")->required();
  app.positionals_at_end();
  app.footer("Example: trireme launch -n 4 -- ./my_program --batch 32");
  return [options, &context] { return run_launch(*options, context.environment); };
}

}  // namespace trireme::command
