#include "trireme/arguments/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "trireme/arguments/nearest.h"
#include "trireme/arguments/parse.h"

namespace trireme::arguments {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

/// The whole text, if it is one.
std::string text_of(std::istream& input) {
  std::string text(kMostBytes + 1, '\0');
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(input.gcount()));
  const auto is_control = [](unsigned char c) {
    return (c < ' ' && c != '\n' && c != '\r' && c != '\t') || c == 127;
  };
  if (text.size() > kMostBytes || std::ranges::any_of(text, is_control)) {
    throw CLI::ConfigError("the file of --config is no text of options: `[train]`, `steps = 100`");
  }
  return text;
}

bool is_bracket(const CLI::ConfigItem& item) { return item.name == "++" || item.name == "--"; }

std::string section_of(const CLI::ConfigItem& item) {
  return item.parents.empty() ? "" : fmt::format("[{}] ", fmt::join(item.parents, "."));
}

[[noreturn]] void refuse(const CLI::ConfigItem& item, const std::string& problem) {
  throw CLI::ConfigError(
      fmt::format("the file of --config: {}'{:.80}' {}", section_of(item), item.name, problem));
}

/// The verb whose section an item is in.
const CLI::App& verb_of(const CLI::App& app, const CLI::ConfigItem& item) {
  const CLI::App* verb = &app;
  for (const std::string& name : item.parents) {
    const auto found =
        verb->get_subcommands([&name](const CLI::App* inner) { return inner->get_name() == name; });
    if (found.empty()) {
      throw CLI::ConfigError(
          fmt::format("the file of --config: [{:.80}] is the section of no verb{}", name,
                      did_you_mean(name, names_of_verbs(*verb))));
    }
    verb = found.front();
  }
  return *verb;
}

/// What may stand in a section.
std::vector<std::string> keys_of(const CLI::App& section) {
  std::vector<std::string> keys = names_of_options(section);
  for (std::string& key : keys) key.erase(0, 2);
  return keys;
}

/// Puts an item where its option is: that of its section's verb, or one of every verb.
void place(const CLI::App& app, CLI::ConfigItem& item) {
  const CLI::ConfigItem as_written = item;
  std::ranges::replace(item.name, '_', '-');
  const std::string name = item.name;
  const CLI::App* verb = &verb_of(app, item);
  while (true) {
    const CLI::Option* option = verb->get_option_no_throw("--" + item.name);
    if (option == nullptr) option = verb->get_option_no_throw(item.name);  // positional
    if (option != nullptr) {
      const bool is_single = option->get_items_expected_max() == 1;
      if (is_single && item.inputs.size() != 1) {
        refuse(item,
               fmt::format("has {} values and takes one; text with spaces or commas is quoted",
                           item.inputs.size()));
      }
      return;
    }
    if (item.parents.empty()) break;
    item.parents.pop_back();
    verb = verb->get_parent();
  }
  item = as_written;
  if (item.name.find_first_of(": ") != std::string::npos) refuse(item, "is not `option = value`");
  const CLI::App& section = verb_of(app, item);
  refuse(item, fmt::format("is no option{}", did_you_mean(name, keys_of(section))));
}

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  std::istringstream text(text_of(input));
  std::vector<CLI::ConfigItem> items = CLI::ConfigTOML::from_config(text);
  std::set<std::pair<std::vector<std::string>, std::string>> seen;
  for (CLI::ConfigItem& item : items) {
    if (is_bracket(item)) continue;
    const CLI::ConfigItem written = item;
    place(app_, item);
    if (!seen.emplace(item.parents, item.name).second) refuse(written, "stands there twice");
  }
  return items;
}

}  // namespace trireme::arguments
