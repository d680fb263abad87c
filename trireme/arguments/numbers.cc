#include "trireme/arguments/numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace trireme::arguments {
namespace {

/// What is wrong with a text that is to be a `Number`; empty where nothing is.
template <typename Number>
std::string number_problem(const std::string& text, std::string_view expected) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  if (stop != end || code == std::errc::invalid_argument) {
    return fmt::format("'{:.40}' is not {}", text, expected);
  }
  if (code == std::errc::result_out_of_range) {
    return fmt::format("{:.40} is beyond 64 bits", text);
  }
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) return fmt::format("'{}' is not {}", text, expected);
  }
  return "";
}

/// By the option's type as the parser names it: what it begins with; sizes have units.
std::string problem_of(const std::string& type, const std::string& text) {
  if (type.find(":SIZE") != std::string::npos) return "";
  if (type.starts_with("INT")) return number_problem<std::int64_t>(text, "a whole number");
  if (type.starts_with("UINT")) {
    return number_problem<std::uint64_t>(text, "a whole number from 0 on");
  }
  return type.starts_with("FLOAT") ? number_problem<double>(text, "a number") : "";
}

CLI::Validator bounded(const char* name, const char* expected, bool (*is_within)(double)) {
  const auto check = [expected, is_within](const std::string& text) -> std::string {
    double number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);  // is one: check_numbers
    return is_within(number) ? "" : fmt::format("{:.40} is not {}", text, expected);
  };
  return {check, name, name};
}

}  // namespace

CLI::Validator positive() {
  return bounded("POSITIVE", "above 0", [](double number) { return number > 0; });
}

CLI::Validator not_negative() {
  return bounded("NOT NEGATIVE", "0 or more", [](double number) { return number >= 0; });
}

void check_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    const std::string type = option->get_type_name();
    // A transformation comes before the checks that the option has.
    option->transform(
        CLI::Validator([type](std::string& text) { return problem_of(type, text); }, "", "number"));
  }
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    check_numbers(*verb);
  }
}

}  // namespace trireme::arguments
