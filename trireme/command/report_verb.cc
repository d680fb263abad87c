#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "trireme/base/error.h"
#include "trireme/command/run_document.h"
#include "trireme/command/run_folder.h"
#include "trireme/command/verbs.h"

namespace trireme::command {
namespace {

/// Where the build found them; a variable may name another interpreter.
constexpr std::string_view kPython = TRIREME_PYTHON_DEFAULT;
constexpr std::string_view kPackages = TRIREME_PYTHON_FOLDER;

struct ReportVerbOptions {
  std::string run;
  std::string out;
};

std::string interpreter(const Environment& environment) {
  std::string python = environment.python.value_or(std::string(kPython));
  if (access(python.c_str(), X_OK) == 0) return python;
  throw Error(ErrorKind::kUnavailable,
              "no Python at " + python + ": " + std::strerror(errno) +
                  (environment.python ? "; TRIREME_PYTHON names it"
                                      : "; `./dev build trireme` installs it, or set "
                                        "TRIREME_PYTHON to one that has what requirements.txt "
                                        "pins"));
}

void check_packages() {
  const std::string package = std::string(kPackages) + "/trireme/report";
  if (access(package.c_str(), R_OK) == 0) return;
  throw Error(ErrorKind::kUnavailable, "no folder " + package +
                                           ": the repository that this program was built from has "
                                           "moved; build it again");
}

/// This process's environment, with our packages before others', and nothing found in the folder
/// in which the user happens to be.
std::vector<std::string> python_environment() {
  std::vector<std::string> variables = {"PYTHONSAFEPATH=1"};
  std::string path = "PYTHONPATH=" + std::string(kPackages);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (variable.starts_with("PYTHONPATH=")) {
      path += ":" + std::string(variable.substr(variable.find('=') + 1));
    } else if (!variable.starts_with("PYTHONSAFEPATH=")) {
      variables.emplace_back(variable);
    }
  }
  variables.push_back(path);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Becomes the interpreter: what it prints and its exit code are this verb's. Returns only by
/// throwing.
int become_report(const ReportVerbOptions& options, const Context& context) {
  const std::filesystem::path document = RunFolder(options.run).document();
  if (std::filesystem::exists(document)) load_run(document);  // refuses what `show` refuses
  check_packages();
  const std::string python = interpreter(context.environment);
  std::vector<std::string> words = {python, "-m", "trireme.report"};
  if (!options.out.empty()) words.push_back("--out=" + options.out);
  if (context.json) words.emplace_back("--json");
  words.insert(words.end(), {"--", options.run});
  std::vector<std::string> variables = python_environment();
  execve(python.c_str(), pointers(words).data(), pointers(variables).data());
  throw Error(ErrorKind::kUnavailable, "cannot start " + python + ": " + std::strerror(errno));
}

}  // namespace

Body add_report(CLI::App& app, Context& context) {
  auto options = std::make_shared<ReportVerbOptions>();
  app.add_option("run", options->run, "Folder of the run")->required();
  app.add_option("--out", options->out, "The page; default: report.html in that folder");
  app.footer("Example: trireme report runs/t5");
  return [options, &context] { return become_report(*options, context); };
}

}  // namespace trireme::command
