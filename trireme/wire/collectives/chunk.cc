#include "trireme/wire/collectives/chunk.h"

#include <algorithm>
#include <string>

#include "trireme/error.h"

namespace trireme::collectives {

namespace {

constexpr std::int64_t kUnit = 16;

/// Of each rank with data.
double share_with_data(int num_with_data, int num_reducers) {
  const double w = num_with_data;
  const double ratio = w / num_reducers;
  return std::max(0.0, (ratio - 1) / (w - 2 + w * ratio));
}

}  // namespace

Chunk chunk_of(std::int64_t num_elements, int size, int index) {
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

std::vector<Chunk> reducer_chunks(std::int64_t num_elements, int size, int num_reducers) {
  std::vector<Chunk> chunks;
  if (num_reducers == 0) {
    for (int i = 0; i < size; ++i) chunks.push_back(chunk_of(num_elements, size, i));
    return chunks;
  }
  const int num_with_data = size - num_reducers;
  const std::int64_t num_units = (num_elements + kUnit - 1) / kUnit;
  const auto units_with_data =
      static_cast<std::int64_t>(static_cast<double>(num_units) *
                                share_with_data(num_with_data, num_reducers) * num_with_data);
  const std::int64_t middle = std::min(num_elements, units_with_data * kUnit);
  for (int i = 0; i < num_with_data; ++i) chunks.push_back(chunk_of(middle, num_with_data, i));
  for (int i = 0; i < num_reducers; ++i) {
    const Chunk chunk = chunk_of(num_elements - middle, num_reducers, i);
    chunks.push_back({middle + chunk.begin, middle + chunk.end});
  }
  return chunks;
}

}  // namespace trireme::collectives
