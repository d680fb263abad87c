#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/error.h"

namespace trireme::recipes {

// Each throws kInvalidArgument, saying what was expected and what came.

/// what   is counted: `the number of heads`.
inline void require_size(std::int64_t number, const std::string& what,
                         std::int64_t most = 1 << 20) {
  if (number >= 1 && number <= most) return;
  throw Error(ErrorKind::kInvalidArgument, what + " must be from 1 to " + std::to_string(most) +
                                               ", got " + std::to_string(number));
}

inline void require_dropout(double dropout) {
  if (dropout >= 0 && dropout < 1) return;  // not where it is no number
  throw Error(ErrorKind::kInvalidArgument,
              "dropout must be in [0, 1), got " + std::to_string(dropout));
}

/// model   `of BERT`.
[[noreturn]] inline void refuse_size_name(const std::string& size, const std::string& model,
                                          const std::vector<std::string>& known) {
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorKind::kInvalidArgument,
              "no size '" + size + "' " + model + "; there are: " + names);
}

}  // namespace trireme::recipes
