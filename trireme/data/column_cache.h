#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "trireme/data/table_file.h"

namespace trireme::data {

/// Columns of groups that were decoded last, up to a number of bytes. A group larger than that is kept until the next one
/// comes, so that rows are read one after the other from one decoding.
///
/// Threads  safe: of several that want one column, one decodes and the others wait for it.
class ColumnCache {
 public:
  struct Key {
    int shard = 0, group = 0, column = 0;
    auto operator<=>(const Key&) const = default;
  };
  using Values = std::shared_ptr<const ColumnValues>;

  explicit ColumnCache(std::int64_t max_bytes) : max_bytes_(max_bytes) {}

  /// What is kept, or else what `decode` returns. Its errors, which are forgotten: the next call decodes again.
  Values get(const Key& key, const std::function<Values()>& decode);

  /// Of all that is kept.
  std::int64_t num_bytes() const;

 private:
  struct Slot {
    Key key;
    std::mutex decoding;  ///< Held by the thread that decodes.
    Values values;        ///< Guarded by `decoding`.
    std::int64_t bytes = 0;
  };
  using Slots = std::list<std::shared_ptr<Slot>>;

  std::shared_ptr<Slot> slot(const Key& key);
  void keep(const Slot& slot, std::int64_t bytes);
  void forget(const Slot& slot);

  std::int64_t max_bytes_;
  mutable std::mutex mutex_;  ///< Guards what follows, and `bytes` of slots.
  Slots slots_;               ///< Used last in front.
  std::map<Key, Slots::iterator> places_;
  std::int64_t num_bytes_ = 0;
};

}  // namespace trireme::data
