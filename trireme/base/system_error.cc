#include "trireme/base/system_error.h"

#include <cerrno>

#include "trireme/error.h"

namespace trireme {
namespace {

bool has_run_out(int code) {
  return code == ENOSPC || code == EDQUOT || code == EFBIG || code == ENOMEM || code == ENOBUFS ||
         code == EMFILE || code == ENFILE;
}

std::string named(const std::string& action, const std::filesystem::path& path) {
  return action + " '" + path.string() + "'";
}

}  // namespace

void throw_system_error(const std::string& action, const std::error_code& code) {
  throw Error(has_run_out(code.value()) ? ErrorKind::kResourceExhausted : ErrorKind::kIo,
              "cannot " + action + ": " + code.message());
}

void throw_system_error(const std::string& action, int code) {
  throw_system_error(action, std::error_code(code, std::generic_category()));
}

void throw_system_error(const std::string& action, const std::filesystem::path& path, int code) {
  throw_system_error(named(action, path), code);
}

void throw_system_error(const std::string& action, const std::filesystem::path& path,
                        const std::error_code& code) {
  throw_system_error(named(action, path), code);
}

}  // namespace trireme
