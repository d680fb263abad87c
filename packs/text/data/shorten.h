#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "packs/text/data/span_corruption.h"

namespace trireme::text {

/// Takes the last token of the longer text, and of the second where both are as long, until both have `most` together.
inline void shorten(std::vector<data::Token>& first, std::vector<data::Token>& second,
                    std::int64_t most) {
  while (std::ssize(first) + std::ssize(second) > most) {
    (first.size() > second.size() ? first : second).pop_back();
  }
}

}  // namespace trireme::text
