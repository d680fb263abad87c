#include "trireme/engine/record/torch_error.h"

#include <string_view>

namespace trireme::record {

ErrorKind kind_of(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
      text.find("not enough memory") != std::string_view::npos) {
    return ErrorKind::kResourceExhausted;
  }
  // What torch says where a device is asked for that it was built without.
  const bool lacks_device = text.find("not linked with support for") != std::string_view::npos ||
                            text.find("not compiled with CUDA") != std::string_view::npos;
  return lacks_device ? ErrorKind::kUnavailable : ErrorKind::kModelFailure;
}

std::string advice(ErrorKind kind) {
  if (kind != ErrorKind::kUnavailable) return "";
  return "; this build of torch has no such device: keep model and data on the CPU, or build "
         "against a torch that has it";
}

std::string text_of(const c10::Error& error) {
  std::string text = error.what_without_backtrace();
  while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
  return text;
}

}  // namespace trireme::record
