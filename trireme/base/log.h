#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace spdlog {
class logger;  // NOLINT(readability-identifier-naming): the vendor's name
}  // namespace spdlog

namespace trireme {

/// How much a log line matters. Text form: `debug`, `info`, `warning`, `error`, `off`.
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError, kOff };

std::string_view to_text(LogLevel level);

/// Inverse of `to_text`. Throws kInvalidArgument, naming the text, where it is none of these.
LogLevel parse_log_level(std::string_view text);

/// Writes lines to standard error: `12:30:01.250 warning rank 3: text`. What is below its level is
/// dropped. Results never go through a log: a program prints them to standard output.
///
/// A value that is passed to whoever logs; copies write to the same place.
/// Threads  safe from any thread; lines do not mix.
class Logger {
 public:
  /// name     who speaks, `rank 3`; nothing is printed for an empty one.
  explicit Logger(LogLevel level, const std::string& name = "");

  void debug(std::string_view text) const { write(LogLevel::kDebug, text); }
  void info(std::string_view text) const { write(LogLevel::kInfo, text); }
  void warning(std::string_view text) const { write(LogLevel::kWarning, text); }
  void error(std::string_view text) const { write(LogLevel::kError, text); }

  /// Whether a line of `level` would be written; for text that costs something to make.
  bool is_enabled(LogLevel level) const;

 private:
  void write(LogLevel level, std::string_view text) const;

  std::shared_ptr<spdlog::logger> logger_;  // shared by the copies; immutable but for its lock
};

}  // namespace trireme
