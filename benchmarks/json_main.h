#pragma once

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "trireme/base/json.h"

namespace trireme::benchmarks {

/// The file after `--json`; empty where there is none.
inline std::string json_file_of(int argc, char** argv) {
  const bool has_file = argc == 3 && std::string(argv[1]) == "--json";
  return has_file ? argv[2] : "";
}

/// Nothing where there is no file.
inline void write_json(const std::string& file, const Json& results) {
  if (!file.empty()) std::ofstream(file) << results.dump(2) << "\n";
}

/// The exit code of `work`; what it throws is printed, and the code is 1.
template <typename Work>
int exit_code_of(const char* name, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace trireme::benchmarks
