#include "trireme/command/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <set>
#include <utility>

#include "trireme/arguments/parse.h"
#include "trireme/session/run_document.h"
#include "trireme/session/run_folder.h"

namespace trireme::command {
namespace {

const std::set<std::string> kNotOfRun = {"help",   "version", "config",  "run",
                                         "resume", "json",    "restarts"};
const std::set<std::string> kShapesPlan = {
    "plan",        "cut-at",           "copy",          "stages",    "stages-per-rank",
    "replicas",    "schedule",         "schedule-file", "recompute", "offload",
    "shard-state", "shard-parameters", "ranks"};

std::string long_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : option.get_lnames().front();
}

const CLI::Option* find(const CLI::App& verb, const std::string& name) {
  for (const CLI::App* app = &verb; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* option = app->get_option_no_throw("--" + name)) return option;
  }
  return nullptr;
}

/// Whether the verb reads a run that another trains: what shapes that one's plan is not for it.
bool reads_run(const CLI::App& verb) {
  return verb.get_name() == "follow" || verb.get_name() == "explain";
}

/// Whether something is given now in an option's place.
bool is_replaced(const CLI::Option& option, bool shapes_plan) {
  const auto& others = option.get_excludes();
  return option.count() > 0 || (shapes_plan && kShapesPlan.contains(long_name(option))) ||
         std::ranges::any_of(others, [](const CLI::Option* other) { return other->count() > 0; });
}

/// What a run was started with. The batch of one that had a plan's file counts for other plans, too.
GivenOptions kept_options(const session::RunDocument& run, bool shapes_plan) {
  GivenOptions kept = run.given;
  if (!shapes_plan || !kept.contains("plan")) return kept;
  kept["batch"] = {std::to_string(run.batch.global_batch)};
  kept["microbatch"] = {std::to_string(run.batch.microbatch)};
  kept["lanes"] = {std::to_string(run.batch.lanes)};
  return kept;
}

/// Words for the options of `run` that still count.
std::vector<std::string> words_for(const CLI::App& verb, const session::RunDocument& run) {
  const bool shapes_plan =
      reads_run(verb) || std::ranges::any_of(kShapesPlan, [&verb](const std::string& name) {
        const CLI::Option* option = find(verb, name);
        return option != nullptr && option->count() > 0;
      });
  std::vector<std::string> words;
  for (const auto& [name, values] : kept_options(run, shapes_plan)) {
    const CLI::Option* option = find(verb, name);
    if (option == nullptr || kNotOfRun.contains(name) || is_replaced(*option, shapes_plan))
      continue;
    for (const std::string& value : values) words.push_back("--" + name + "=" + value);
  }
  return words;
}

/// run.json of the run that `train --resume` goes on with, or that is read; empty where there is none.
std::filesystem::path known_run(const CLI::App& verb) {
  const CLI::Option* run = verb.get_option_no_throw("--run");
  const CLI::Option* resume = verb.get_option_no_throw("--resume");
  const bool goes_on = reads_run(verb) || (resume != nullptr && resume->count() > 0);
  if (run == nullptr || run->count() == 0 || !goes_on) return {};
  const std::filesystem::path path = session::RunFolder(run->as<std::string>()).document();
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? path : std::filesystem::path();
}

}  // namespace

GivenOptions given_options(const CLI::App& verb) {
  GivenOptions given;
  for (const CLI::App* app = &verb; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      const std::string name = long_name(*option);
      if (name.empty() || option->count() == 0 || kNotOfRun.contains(name)) continue;
      std::vector<std::string> values = option->results();
      if (option->get_items_expected_max() <= 1) values.erase(values.begin(), values.end() - 1);
      given[name] = std::move(values);
    }
  }
  return given;
}

void parse_with_run(CLI::App& app, std::span<const char* const> argv) {
  std::exception_ptr missing;  // An option that another needs: the run may have it.
  try {
    arguments::parse(app, argv);
  } catch (const CLI::RequiresError&) {
    missing = std::current_exception();
  }
  const CLI::App& verb = arguments::called(app);
  const std::filesystem::path run = known_run(verb);
  const std::vector<std::string> kept =
      run.empty() ? std::vector<std::string>() : words_for(verb, session::load_kept_run(run));
  if (kept.empty() && missing) std::rethrow_exception(missing);
  if (kept.empty()) return;
  std::vector<const char*> all(argv.begin(), argv.end());
  for (const std::string& word : kept) all.push_back(word.c_str());
  arguments::parse(app, all);
}

}  // namespace trireme::command
