// libFuzzer's changes and those of InputMutator, in turn: coverage leads both.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/support/mutate_input.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  trireme::testing::InputMutator mutator(seed);
  const std::string made =
      mutator.mutate(std::string_view(reinterpret_cast<const char*>(data), size), max_size);
  std::memcpy(data, made.data(), made.size());
  return made.size();
}
