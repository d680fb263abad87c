#include <cstdio>
#include <cstring>
#include <optional>

#include "trireme/wire/c/handles.h"

namespace trireme::c {
namespace {

constexpr std::size_t kMaxText = 4096;

/// This thread's last error: of fixed size, so that to keep one cannot fail.
struct LastError {
  char text[kMaxText] = "";
  std::int32_t peer = -1;
};

// The interface is C's: an error has nowhere else to stay until it is asked for.
thread_local LastError last_error;

TriremeStatus status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return kTriremeInvalidArgument;
    case ErrorKind::kTimeout:
      return kTriremeTimeout;
    case ErrorKind::kPeerLost:
      return kTriremePeerLost;
    case ErrorKind::kIo:
    case ErrorKind::kModelFailure:  // No model runs under this interface.
      return kTriremeIo;
    case ErrorKind::kCorruptData:
      return kTriremeCorruptData;
    case ErrorKind::kResourceExhausted:
      return kTriremeResourceExhausted;
    case ErrorKind::kUnavailable:
      return kTriremeUnavailable;
    case ErrorKind::kCancelled:
      return kTriremeCancelled;
  }
  return kTriremeIo;
}

}  // namespace

TriremeStatus keep(const Error& error) noexcept {
  const TriremeStatus status = keep_other(status_of(error.kind()), error.what());
  last_error.peer = error.context().peer.value_or(-1);
  return status;
}

TriremeStatus keep_other(TriremeStatus status, const char* text) noexcept {
  std::snprintf(last_error.text, kMaxText, "%s", text);
  last_error.peer = -1;
  return status;
}

void check_struct_bytes(std::size_t given, std::size_t own) {
  if (given == own) return;
  refuse("'struct_bytes' is " + std::to_string(given) + ", expected " + std::to_string(own) +
         "; compile with the header of this library's version");
}

void refuse(const std::string& problem) { throw Error(ErrorKind::kInvalidArgument, problem); }

}  // namespace trireme::c

extern "C" {

const char* trireme_last_error(void) { return trireme::c::last_error.text; }

int32_t trireme_last_error_peer(void) { return trireme::c::last_error.peer; }

int32_t trireme_wire_version(void) { return kTriremeWireVersion; }

const char* trireme_status_text(TriremeStatus status) {
  switch (status) {
    case kTriremeOk:
      return "ok";
    case kTriremeInvalidArgument:
      return "invalid argument";
    case kTriremeTimeout:
      return "timeout";
    case kTriremePeerLost:
      return "peer lost";
    case kTriremeIo:
      return "i/o error";
    case kTriremeCorruptData:
      return "corrupt data";
    case kTriremeResourceExhausted:
      return "resource exhausted";
    case kTriremeUnavailable:
      return "unavailable";
    case kTriremeCancelled:
      return "cancelled";
    case kTriremePending:
      return "pending";
    default:
      return "no such status";
  }
}

}  // extern "C"
