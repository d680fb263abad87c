#include "trireme/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <utility>

#include "trireme/error.h"

namespace trireme {
namespace {

struct LevelFacts {
  std::string_view name;
  spdlog::level::level_enum level;
};

constexpr std::array<LevelFacts, 5> kLevels = {{{"debug", spdlog::level::debug},
                                                {"info", spdlog::level::info},
                                                {"warning", spdlog::level::warn},
                                                {"error", spdlog::level::err},
                                                {"off", spdlog::level::off}}};

spdlog::level::level_enum vendor_level(LogLevel level) {
  return kLevels[static_cast<std::size_t>(level)].level;
}

}  // namespace

std::string_view to_text(LogLevel level) { return kLevels[static_cast<std::size_t>(level)].name; }

LogLevel parse_log_level(std::string_view text) {
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    if (kLevels[i].name == text) return static_cast<LogLevel>(i);
  }
  throw Error(ErrorKind::kInvalidArgument,
              "'" + std::string(text) +
                  "' is not a log level; expected debug, info, warning, error or off");
}

Logger::Logger(LogLevel level, const std::string& name)
    : logger_(std::make_shared<spdlog::logger>(name,
                                               std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_level(vendor_level(level));
  logger_->set_pattern(name.empty() ? "%T.%e %l %v" : "%T.%e %l %n: %v");
}

bool Logger::is_enabled(LogLevel level) const { return logger_->should_log(vendor_level(level)); }

void Logger::write(LogLevel level, std::string_view text) const {
  logger_->log(vendor_level(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace trireme
