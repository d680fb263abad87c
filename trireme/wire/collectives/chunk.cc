#include "trireme/wire/collectives/chunk.h"

#include <algorithm>
#include <string>

#include "trireme/base/error.h"

namespace trireme::collectives {

Chunk chunk_of(std::int64_t num_elements, int size, int index) {
  constexpr std::int64_t kUnit = 16;
  if (num_elements < 0 || size < 1 || index < 0 || index >= size) {
    throw Error(ErrorKind::kInvalidArgument, "there is no chunk " + std::to_string(index) + " of " +
                                                 std::to_string(size) + " of " +
                                                 std::to_string(num_elements) + " elements");
  }
  const std::int64_t num_units = (num_elements + kUnit - 1) / kUnit;
  // units * index / size without overflow
  const auto edge = [&](std::int64_t i) {
    const std::int64_t units = num_units / size * i + num_units % size * i / size;
    return std::min(num_elements, units * kUnit);
  };
  return {edge(index), edge(index + 1)};
}

}  // namespace trireme::collectives
