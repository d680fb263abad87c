#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include "trireme/command/verbs.h"
#include "trireme/error.h"
#include "trireme/session/run_document.h"
#include "trireme/session/run_folder.h"

namespace trireme::command {
namespace {

/// Those of the tree that this was built in: an installed program may find others.
constexpr std::string_view kBuiltPython = TRIREME_PYTHON_DEFAULT;
constexpr std::string_view kBuiltPackages = TRIREME_PYTHON_FOLDER;

struct ReportVerbOptions {
  std::string run;
  std::vector<std::string> words;  ///< Options of trireme.report, which checks them.
};

/// A name is looked up in PATH.
std::string interpreter(const Environment& environment) {
  if (environment.python) return *environment.python;
  const std::string built(kBuiltPython);
  return access(built.c_str(), X_OK) == 0 ? built : "python3";
}

/// The file that holds this code: the shared library, or a program that has it inside.
std::filesystem::path own_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&interpreter), &info) == 0) return {};
  return std::filesystem::weakly_canonical(info.dli_fname);
}

/// The folder of our Python packages: `share/trireme/python` of the prefix in which this is
/// installed, else the one of the tree.
std::string packages_folder() {
  for (auto folder = own_file().parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    const std::filesystem::path found = folder / "share/trireme/python";
    if (std::filesystem::is_directory(found / "trireme/report")) return found;
  }
  if (std::filesystem::is_directory(std::filesystem::path(kBuiltPackages) / "trireme/report")) {
    return std::string(kBuiltPackages);
  }
  throw Error(ErrorKind::kUnavailable,
              "no folder trireme/report in " + std::string(kBuiltPackages) +
                  ", nor share/trireme/python above " + own_file().string() +
                  ": install again, or build again where the repository is now");
}

/// This process's environment, with our packages before others', and nothing found in the folder
/// in which the user happens to be.
std::vector<std::string> python_environment(const std::string& packages) {
  std::vector<std::string> variables = {"PYTHONSAFEPATH=1"};
  std::string path = "PYTHONPATH=" + packages;
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
  const std::filesystem::path document = session::RunFolder(options.run).document();
  if (std::filesystem::exists(document))
    session::load_run(document);  // refuses what `show` refuses
  const std::string python = interpreter(context.environment);
  std::vector<std::string> words = {python, "-m", "trireme.report"};
  words.insert(words.end(), options.words.begin(), options.words.end());
  if (context.json) words.emplace_back("--json");
  words.insert(words.end(), {"--", options.run});
  std::vector<std::string> variables = python_environment(packages_folder());
  execvpe(python.c_str(), pointers(words).data(), pointers(variables).data());
  throw Error(ErrorKind::kUnavailable,
              "cannot start " + python + ": " + std::strerror(errno) +
                  (context.environment.python
                       ? "; TRIREME_PYTHON names it"
                       : "; set TRIREME_PYTHON to one that has what requirements.txt pins"));
}

/// An option that is handed on with its value, once.
void hand_on(CLI::App& app, std::vector<std::string>& words, const std::string& name,
             const std::string& help) {
  app.add_option_function<std::string>(
      name, [&words, name](const std::string& value) { words.push_back(name + "=" + value); },
      help);
}

void hand_on_all(CLI::App& app, std::vector<std::string>& words, const std::string& name,
                 const std::string& help) {
  const auto take = [&words, name](const std::vector<std::string>& values) {
    for (const std::string& value : values) words.push_back(name + "=" + value);
  };
  app.add_option_function<std::vector<std::string>>(name, take, help)->expected(1)->take_all();
}

void hand_on_flag(CLI::App& app, std::vector<std::string>& words, const std::string& name,
                  const std::string& help) {
  app.add_flag_function(name, [&words, name](std::int64_t) { words.push_back(name); }, help);
}

void add_writers(CLI::App& app, std::vector<std::string>& words) {
  hand_on(app, words, "--tensorboard",
          "Write the metrics into this folder, as TensorBoard reads them");
  hand_on(app, words, "--mlflow", "Write them to this tracking server or database of MLflow");
  hand_on(app, words, "--experiment",
          "Of MLflow; default: MLFLOW_EXPERIMENT_NAME, or its experiment Default");
  hand_on(app, words, "--mlperf", "Write them into this file, as MLPerf's logging lines");
  hand_on(app, words, "--mlperf-benchmark", "Its name in MLPerf; default: the model's");
  hand_on_all(app, words, "--mlperf-value",
              "KEY=VALUE, a line that the run does not know, or knows otherwise; may be repeated");
  hand_on(app, words, "--best-by",
          "Loss or metric that is MLPerf's quality; default: the run's --best-by");
  hand_on_flag(app, words, "--best-is-most", "More of it is better; default: as the run has it");
  hand_on_flag(app, words, "--best-is-least", "Less of it is better");
  hand_on(app, words, "--target", "The quality that was to be met; default: the run's --target");
  hand_on_flag(app, words, "--follow", "Go on with what a living run writes, until it ends");
}

}  // namespace

Body add_report(CLI::App& app, Context& context) {
  auto options = std::make_shared<ReportVerbOptions>();
  app.add_option("run", options->run,
                 "Folder of the run, or a file with what `validate --json` printed")
      ->required();
  hand_on(
      app, options->words, "--out",
      "The page; default: report.html in that folder, or FILE.html beside FILE.json, where nothing "
      "else is asked for");
  add_writers(app, options->words);
  app.footer(
      "Example: trireme report runs/t5; with --tensorboard boards/t5 --follow its curves\n"
      "         trireme report judged.json");
  return [options, &context] { return become_report(*options, context); };
}

}  // namespace trireme::command
