#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

namespace trireme {

/// What went wrong, for code that reacts; the message is for people.
enum class ErrorKind : std::uint8_t {
  kInvalidArgument,    ///< The caller passed something checkable; nothing has happened yet.
  kTimeout,            ///< A deadline passed.
  kPeerLost,           ///< Another rank went away.
  kIo,                 ///< The operating system refused or failed.
  kCorruptData,        ///< A file or message is not what it claims to be.
  kResourceExhausted,  ///< Out of memory, disk or descriptors.
  kUnavailable,        ///< This build or machine lacks what was asked for.
  kCancelled,          ///< Somebody asked to stop.
  kModelFailure,       ///< The user's model failed, or torch in running it.
};

/// `kind` as it is printed: `invalid argument`, `timeout`, ...
std::string_view to_text(ErrorKind kind);

/// Where in the work an error happened. Each level adds what it knows; what is set stays.
struct ErrorContext {
  std::optional<int> rank;
  std::optional<int> peer;
  std::string group;
  std::string operation;
  std::optional<std::int64_t> sequence;
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> microbatch;
};

/// The one exception type. Immutable but for `add`; copies share nothing mutable.
///
/// A message names expected and actual and ends with what to do, where that is known.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message,
        std::source_location where = std::source_location::current());

  /// As above, with the error that led to this one; its text follows after `caused by`.
  Error(ErrorKind kind, std::string message, const std::exception& cause,
        std::source_location where = std::source_location::current());

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const ErrorContext& context() const { return context_; }
  const std::source_location& where() const { return where_; }

  /// Fills the fields of the context that are not set yet.
  Error& add(const ErrorContext& context);

  /// Kind, message, context and causes in one line.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void compose();

  ErrorKind kind_;
  std::string message_;
  std::string cause_;
  ErrorContext context_;
  std::source_location where_;
  std::string text_;
};

}  // namespace trireme
