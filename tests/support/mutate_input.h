#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace trireme::testing {

/// Makes inputs of fuzz targets out of valid ones. The same seed makes the same inputs.
///
/// JSON is changed as a tree: fields go, repeat, take each other's values, numbers become the least and the largest of
/// their type. A document's `sha256` is then made right again, else nothing behind it would ever be reached. Safetensors
/// files are changed in their header, whose length is made right, and lines each by itself. What is none of these, and
/// one change in eight, is a change of bytes.
class InputMutator {
 public:
  explicit InputMutator(std::uint32_t seed) : random_(seed) {}

  /// `input` with one to four changes; at most `max_bytes`, else cut off there.
  std::string mutate(std::string_view input, std::size_t max_bytes);

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }
  std::string change(const std::string& text);
  std::string change_bytes(std::string text);
  std::string change_json(const std::string& text);
  std::string change_line(const std::string& text);
  std::string change_header(const std::string& text, std::size_t header_bytes);

  std::mt19937 random_;
};

}  // namespace trireme::testing
