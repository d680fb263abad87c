#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace trireme::text {

/// A random part of a stream of documents, at most `max_bytes` long: those whose draws are lowest.
/// Whether one is kept depends on the seed, its place and how much there is, on nothing else.
/// Caller-synchronised.
class TextSample {
 public:
  TextSample(std::int64_t max_bytes, std::uint64_t seed)
      : max_bytes_(static_cast<std::size_t>(max_bytes)), seed_(seed) {}

  void add(std::string document);

  /// What was kept, in the order in which it came. Call it last.
  std::vector<std::string> finish();

 private:
  std::size_t max_bytes_;
  std::uint64_t seed_;
  std::int64_t num_documents_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::string> kept_;  ///< By draw and index.
};

}  // namespace trireme::text
