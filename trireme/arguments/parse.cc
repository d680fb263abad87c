#include "trireme/arguments/parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "trireme/arguments/config_file.h"
#include "trireme/arguments/nearest.h"
#include "trireme/arguments/numbers.h"

namespace trireme::arguments {
namespace {

constexpr const char* kUsualName = "trireme";

/// An option's line of help: its type and default; what it takes where that is a list.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string text = " " + type_of(*option);
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    if (option->get_required()) text += " REQUIRED";
    return text;
  }

 private:
  static std::string type_of(const CLI::Option& option) {
    if (!option.get_option_text().empty()) return option.get_option_text();
    const std::string type = option.get_type_name();
    const std::size_t list = type.find('{');
    return list != std::string::npos ? type.substr(list) : type.substr(0, type.find(':'));
  }
};

void call_by_name(CLI::App& verb, const std::string& name) {
  std::string text = verb.get_footer();
  const std::string before = std::string("Example: ") + kUsualName + " ";
  const std::string after = "Example: " + name + " ";  // `trireme bench` is there already
  if (text.starts_with(before)) {
    text.erase(0, text.starts_with(after) ? after.size() : before.size());
    verb.footer(after + text + "\nOptions of every verb: " + name + " --help");
  }
  for (CLI::App* inner : verb.get_subcommands([](const CLI::App*) { return true; })) {
    call_by_name(*inner, name);
  }
}

/// `--learning_rate=0.1` -> `learning-rate`; nothing for what is no long option.
std::optional<std::string> option_name(const std::string& word) {
  if (!word.starts_with("--") || word.size() < 3) return std::nullopt;
  std::string name = word.substr(2, word.find('=') - 2);
  std::ranges::replace(name, '_', '-');
  return name;
}

/// Why words of a command line mean nothing; `words`: those that are left.
std::string leftover_text(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& verb = called(app);
  const std::vector<std::string> verbs = names_of_verbs(verb);
  const auto word = std::ranges::find_if(
      words, [](const std::string& text) { return !text.empty() && text[0] != '-'; });
  if (!verbs.empty() && word != words.end()) {
    return fmt::format("'{}' is no verb{}", *word, did_you_mean(*word, verbs));
  }
  for (const std::string& text : words) {
    const auto name = option_name(text);
    if (!name) continue;
    const std::vector<std::string> names = names_of_options(verb);
    if (std::ranges::find(names, "--" + *name) != names.end()) {
      return fmt::format("--{} is an option of {} and stands after it", *name, verb.get_name());
    }
    return fmt::format("--{} is no option of {}{}", *name, verb.get_name(),
                       did_you_mean("--" + *name, names));
  }
  if (words.empty()) return "";
  return fmt::format("'{}' is one word too many for {}", words.front(), verb.get_name());
}

}  // namespace

std::string program_name(std::span<const char* const> argv) {
  const std::string name =
      argv.empty() || argv[0] == nullptr ? "" : std::filesystem::path(argv[0]).filename().string();
  return name.empty() ? kUsualName : name;
}

void set_up(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormat>());
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.allow_config_extras(CLI::config_extras_mode::error);
}

void finish_set_up(CLI::App& app) {
  app.config_formatter(std::make_shared<ConfigFile>(app));
  check_numbers(app);
  call_by_name(app, app.get_name());
}

void parse(CLI::App& app, std::span<const char* const> argv) {
  std::vector<std::string> words;
  bool is_ours = true;
  for (const char* text : argv.subspan(std::min<std::size_t>(1, argv.size()))) {
    std::string word = text;
    is_ours = is_ours && word != "--";
    const auto name = option_name(word);
    if (is_ours && name) word.replace(2, name->size(), *name);
    words.push_back(std::move(word));
  }
  std::ranges::reverse(words);  // as the parser wants them
  app.parse(std::move(words));
}

const CLI::App& called(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return *verb;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = called(app);
  std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
      (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
       !names_of_verbs(verb).empty())) {
    const std::string leftover = leftover_text(app, app.remaining(true));
    text = leftover.empty() ? fmt::format("a verb is missing; there are {}",
                                          fmt::join(names_of_verbs(verb), ", "))
                            : leftover;
  }
  const std::string caller = &verb == &app ? "" : " " + verb.get_name();
  return fmt::format("{} (help: {}{} --help)", text, app.get_name(), caller);
}

std::vector<std::string> names_of_verbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::App* app = &verb; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

}  // namespace trireme::arguments
