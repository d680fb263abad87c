#include "python/backend/torch_errors.h"

#include <c10/util/Exception.h>

namespace trireme::backend {
namespace {

/// As torch's own backends begin, where programs look for it.
std::string text_of(const Error& error, const CallLine& line) {
  std::string text = "trireme: ";
  if (error.kind() == ErrorKind::kTimeout) text += "Timed out waiting: ";
  text += error.what();
  if (line.line != 0) text += "; called at " + to_text(line);
  return text;
}

c10::SourceLocation place_of(const Error& error) {
  return {error.where().function_name(), error.where().file_name(), error.where().line()};
}

}  // namespace

std::exception_ptr operation_failed(const Error& error, const CallLine& line) {
  return std::make_exception_ptr(c10::DistBackendError(place_of(error), text_of(error, line)));
}

void throw_refusal(const Error& error, const CallLine& line) {
  if (error.kind() == ErrorKind::kInvalidArgument) {
    throw c10::ValueError(place_of(error), text_of(error, line));
  }
  std::rethrow_exception(operation_failed(error, line));
}

}  // namespace trireme::backend
