#include "packs/text/data/text_sample.h"

#include <algorithm>
#include <iterator>

#include "trireme/base/random.h"

namespace trireme::text {

void TextSample::add(std::string document) {
  const std::int64_t index = num_documents_++;
  const Place place(stream_seed(seed_, {static_cast<std::uint64_t>(index)}), index);
  // Else a short one could take the room that a longer one with a lower draw did not find.
  if (lowest_evicted_ && place > *lowest_evicted_) return;
  bytes_ += document.size();
  kept_.emplace(place, std::move(document));
  // One stays, however long it is.
  while (bytes_ > max_bytes_ && kept_.size() > 1) {
    const auto last = std::prev(kept_.end());
    lowest_evicted_ = last->first;
    bytes_ -= last->second.size();
    kept_.erase(last);
  }
}

std::vector<std::string> TextSample::finish() {
  std::vector<std::pair<std::int64_t, std::string>> ordered;
  for (auto& [key, document] : kept_) ordered.emplace_back(key.second, std::move(document));
  kept_.clear();
  std::sort(ordered.begin(), ordered.end());
  std::vector<std::string> documents;
  for (auto& [index, document] : ordered) documents.push_back(std::move(document));
  return documents;
}

}  // namespace trireme::text
