#include "trireme/data/column_cache.h"

#include <iterator>

namespace trireme::data {

ColumnCache::Values ColumnCache::get(const Key& key, const std::function<Values()>& decode) {
  const std::shared_ptr<Slot> found = slot(key);
  const std::lock_guard lock(found->decoding);
  if (found->values) return found->values;
  try {
    found->values = decode();
  } catch (...) {
    forget(*found);
    throw;
  }
  keep(*found, found->values->num_bytes());
  return found->values;
}

std::int64_t ColumnCache::num_bytes() const {
  const std::lock_guard lock(mutex_);
  return num_bytes_;
}

std::shared_ptr<ColumnCache::Slot> ColumnCache::slot(const Key& key) {
  const std::lock_guard lock(mutex_);
  if (const auto place = places_.find(key); place != places_.end()) {
    slots_.splice(slots_.begin(), slots_, place->second);
    return slots_.front();
  }
  slots_.push_front(std::make_shared<Slot>());
  slots_.front()->key = key;
  places_[key] = slots_.begin();
  return slots_.front();
}

void ColumnCache::keep(const Slot& slot, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(slot.key);
  if (place == places_.end() || place->second->get() != &slot) return;
  (*place->second)->bytes = bytes;
  num_bytes_ += bytes;
  for (auto last = slots_.end(); num_bytes_ > max_bytes_ && last != slots_.begin();) {
    const Slot& old = **--last;
    if (&old == &slot || old.bytes == 0) continue;  // none: it is being decoded
    num_bytes_ -= old.bytes;
    places_.erase(old.key);
    last = slots_.erase(last);
  }
}

void ColumnCache::forget(const Slot& slot) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(slot.key);
  if (place == places_.end() || place->second->get() != &slot) return;
  slots_.erase(place->second);
  places_.erase(place);
}

}  // namespace trireme::data
