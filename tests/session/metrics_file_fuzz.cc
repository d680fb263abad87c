// Whatever bytes a killed run has left in `metrics.jsonl`, what remains once its half line is cut off is the beginning of them, up
// to the end of a line; to cut once more changes nothing, and lines may follow.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "trireme/base/files.h"
#include "trireme/session/run_folder.h"

namespace {

std::filesystem::path file() {
  return std::filesystem::temp_directory_path() /
         ("trireme_metrics_" + std::to_string(getpid()) + ".jsonl");
}

std::string cut(const std::filesystem::path& path) {
  trireme::session::cut_half_line(path);
  return trireme::read_file(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::filesystem::path path = file();
  std::ofstream(path, std::ios::binary) << text;
  const std::string left = cut(path);
  const std::size_t end = text.rfind('\n');
  if (left != text.substr(0, end == std::string::npos ? 0 : end + 1)) std::abort();
  if (cut(path) != left) std::abort();
  std::filesystem::remove(path);
  return 0;
}
