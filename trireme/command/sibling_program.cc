#include "trireme/command/sibling_program.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::command {

void become(const std::string& name, std::span<const char* const> words) {
  const std::filesystem::path beside =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
  std::vector<char*> arguments = {const_cast<char*>(name.c_str())};
  for (const char* word : words) arguments.push_back(const_cast<char*>(word));
  arguments.push_back(nullptr);
  execv(beside.c_str(), arguments.data());
  if (errno == ENOENT) execvp(name.c_str(), arguments.data());
  if (errno != ENOENT) throw_system_error("start", name, errno);
  throw Error(ErrorKind::kUnavailable,
              "there is no program " + name +
                  " beside this one or in PATH; build or install it: `./dev build " + name + "`");
}

}  // namespace trireme::command
