#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trireme::text {

/// A random part of a stream of documents, at most `max_bytes` long: as many as fit of those in
/// order of their draws, at least one. A draw depends on the seed and the document's place alone.
/// Caller-synchronised.
class TextSample {
 public:
  TextSample(std::int64_t max_bytes, std::uint64_t seed)
      : max_bytes_(static_cast<std::size_t>(max_bytes)), seed_(seed) {}

  void add(std::string document);

  /// What was kept, in the order in which it came. Call it last.
  std::vector<std::string> finish();

 private:
  using Place = std::pair<std::uint64_t, std::int64_t>;  ///< Draw and index.

  std::size_t max_bytes_;
  std::uint64_t seed_;
  std::int64_t num_documents_ = 0;
  std::size_t bytes_ = 0;
  std::map<Place, std::string> kept_;
  std::optional<Place> lowest_evicted_;
};

}  // namespace trireme::text
