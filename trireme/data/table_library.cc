#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "trireme/base/environment.h"
#include "trireme/data/table_file.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTableLibrary = "libtrireme_tables.so";
constexpr const char* kArrowFolder = "TRIREME_ARROW_DIR";

[[noreturn]] void refuse_tables(const std::string& problem) {
  throw Error(ErrorKind::kUnavailable,
              "Parquet and Arrow files cannot be read here: " + problem +
                  "; they need Arrow's C++ libraries, which come with Python's pyarrow: install "
                  "the version that "
                  "Trireme was built with (docs/dependencies.md), or set " +
                  kArrowFolder + " to its folder; a build without pyarrow leaves " + kTableLibrary +
                  " out");
}

void* load(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = dlerror();
    refuse_tables(reason == nullptr ? name : reason);
  }
  return library;
}

/// Libraries that are loaded count for those that are looked for, by their names with the version.
void load_arrow_from(const fs::path& folder) {
  bool is_there = false;
  std::error_code problem;
  for (fs::directory_iterator file(folder, problem), end; !problem && file != end;
       file.increment(problem)) {
    if (!file->path().filename().native().starts_with("libparquet.so.")) continue;
    load(fs::absolute(file->path()));
    is_there = true;
  }
  if (!is_there) {
    refuse_tables(std::string(kArrowFolder) + " is '" + folder.string() +
                  "', which holds no libparquet.so.*");
  }
}

}  // namespace

const TableLibrary& load_table_library() {
  const std::string folder = process_variable(kArrowFolder).value_or("");
  if (!folder.empty()) load_arrow_from(folder);
  void* library = load(kTableLibrary);
  const auto function =
      reinterpret_cast<TableLibraryFunction>(dlsym(library, kTableLibraryFunction));
  if (function == nullptr) {
    refuse_tables(std::string(kTableLibrary) + " is of another version of Trireme: it has no " +
                  kTableLibraryFunction);
  }
  return *function();
}

}  // namespace trireme::data
