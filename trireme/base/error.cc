#include "trireme/error.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "trireme/base/check.h"

namespace trireme {
namespace {

template <typename T>
void append(std::string& text, const char* name, const std::optional<T>& value) {
  if (value) text += std::string(text.empty() ? "" : ", ") + name + " " + std::to_string(*value);
}

void append(std::string& text, const char* name, const std::string& value) {
  if (!value.empty()) text += std::string(text.empty() ? "" : ", ") + name + " " + value;
}

std::string to_text(const ErrorContext& context) {
  std::string text;
  append(text, "rank", context.rank);
  append(text, "peer", context.peer);
  append(text, "group", context.group);
  append(text, "operation", context.operation);
  append(text, "sequence", context.sequence);
  append(text, "step", context.step);
  append(text, "microbatch", context.microbatch);
  return text;
}

template <typename T>
void fill(std::optional<T>& mine, const std::optional<T>& theirs) {
  if (!mine) mine = theirs;
}

void fill(std::string& mine, const std::string& theirs) {
  if (mine.empty()) mine = theirs;
}

}  // namespace

std::string_view to_text(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return "invalid argument";
    case ErrorKind::kTimeout:
      return "timeout";
    case ErrorKind::kPeerLost:
      return "peer lost";
    case ErrorKind::kIo:
      return "input/output";
    case ErrorKind::kCorruptData:
      return "corrupt data";
    case ErrorKind::kResourceExhausted:
      return "resource exhausted";
    case ErrorKind::kUnavailable:
      return "unavailable";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kModelFailure:
      return "model failure";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, std::string message, std::source_location where)
    : kind_(kind), message_(std::move(message)), where_(where) {
  compose();
}

Error::Error(ErrorKind kind, std::string message, const std::exception& cause,
             std::source_location where)
    : kind_(kind), message_(std::move(message)), cause_(cause.what()), where_(where) {
  compose();
}

Error& Error::add(const ErrorContext& context) {
  fill(context_.rank, context.rank);
  fill(context_.peer, context.peer);
  fill(context_.group, context.group);
  fill(context_.operation, context.operation);
  fill(context_.sequence, context.sequence);
  fill(context_.step, context.step);
  fill(context_.microbatch, context.microbatch);
  compose();
  return *this;
}

void Error::compose() {
  text_ = std::string(trireme::to_text(kind_)) + ": " + message_;
  const std::string context = to_text(context_);
  if (!context.empty()) text_ += " (" + context + ")";
  if (!cause_.empty()) text_ += "; caused by " + cause_;
}

void internal::check_failed(std::string_view condition, const std::string& message,
                            std::source_location where) {
  std::fprintf(stderr, "trireme: broken invariant %.*s at %s:%u: %s\n",
               static_cast<int>(condition.size()), condition.data(), where.file_name(),
               static_cast<unsigned>(where.line()), message.c_str());
  std::abort();
}

}  // namespace trireme
