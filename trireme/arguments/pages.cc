#include "trireme/arguments/pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "trireme/arguments/parse.h"

namespace trireme::arguments {
namespace {

/// What roff would take for a request or an escape.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '-') result += '\\';
    result += c;
    if (c == '\n') result += "\\&";
  }
  return result;
}

std::string options_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_group().empty()) continue;
    text += fmt::format(".TP\n.B {}\n\\&{}\n", plain(option->get_name(false, true)),
                        plain(option->get_description()));
  }
  return text;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const std::string program = app.get_name();
  std::string cases;
  for (const std::string& verb : names_of_verbs(app)) {
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb,
                         fmt::join(names_of_options(*app.get_subcommand(verb)), " "));
  }
  std::string function = program;
  std::ranges::replace_if(function, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return fmt::format(R"(_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} verb=${{COMP_WORDS[1]}} words=""
  case $verb in
{1}  esac
  if ((COMP_CWORD == 1)); then
    words="{2} {3}"
  elif [[ $word != -* ]]; then
    words=""
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o default -F _{0} {4}
)",
                     function, cases, fmt::join(names_of_verbs(app), " "),
                     fmt::join(names_of_options(app), " "), program);
}

std::string man_page(const CLI::App& app) {
  const std::string program = app.get_name();
  std::string page = fmt::format(".TH {} 1\n.SH NAME\n{} \\- {}\n.SH OPTIONS\n{}", upper(program),
                                 plain(program), plain(app.get_description()), options_of(app));
  for (const std::string& verb : names_of_verbs(app)) {
    const CLI::App* sub = app.get_subcommand(verb);
    page += fmt::format(".SH {} {}\n\\&{}\n{}", upper(program), upper(verb),
                        plain(sub->get_description()), options_of(*sub));
    if (!sub->get_footer().empty()) page += fmt::format(".PP\n\\&{}\n", plain(sub->get_footer()));
  }
  return page;
}

void add_page_options(CLI::App& app) {
  app.add_flag_callback(
      "--bash-completion", [&app] { throw CLI::CallForVersion(bash_completion(app), 0); },
      "Print a script for bash that completes verbs and options");
  app.add_flag_callback(
      "--man-page", [&app] { throw CLI::CallForVersion(man_page(app), 0); },
      "Print the page for man");
}

}  // namespace trireme::arguments
