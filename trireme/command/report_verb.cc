#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
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
  std::string out;
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
  if (!options.out.empty()) words.push_back("--out=" + options.out);
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

}  // namespace

Body add_report(CLI::App& app, Context& context) {
  auto options = std::make_shared<ReportVerbOptions>();
  app.add_option("run", options->run, "Folder of the run")->required();
  app.add_option("--out", options->out, "The page; default: report.html in that folder");
  app.footer("Example: trireme report runs/t5");
  return [options, &context] { return become_report(*options, context); };
}

}  // namespace trireme::command
