#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trireme::doctor {

enum class Verdict : std::uint8_t {
  kGood,
  kSlow,    ///< Works, but not as fast as it could.
  kBroken,  ///< Ranks cannot work like that.
};

/// `good`, `slow`, `broken`.
std::string_view to_text(Verdict verdict);

/// What a check has found.
struct Finding {
  std::string topic;
  Verdict verdict = Verdict::kGood;
  std::string found;
  std::string advice;  ///< What to do; empty where all is well.
};

/// A table, a line each, and below it what to do.
std::string to_text(std::span<const Finding> findings);

}  // namespace trireme::doctor
