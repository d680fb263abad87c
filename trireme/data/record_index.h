#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/base/sha256.h"

namespace trireme::data {

/// Where the records of several shards lie that follow each other in their files: 8 bytes of memory a record.
/// Filled by one thread, then immutable.
class RecordIndex {
 public:
  struct Place {
    int shard = 0;
    std::int64_t number = 0;          ///< Of the record in its shard, from 0.
    std::int64_t begin = 0, end = 0;  ///< In the shard.
  };

  /// A record of the shard that is being filled, the first one at first.
  void add(std::int64_t begin) { begins_.push_back(begin); }

  /// All records of this shard are there; the last ends at `end`. Returns how many there are.
  std::int64_t finish_shard(std::int64_t end);

  std::int64_t num_records() const { return first_.back(); }

  /// Errors   kInvalidArgument for an index out of range, with `form` in front.
  Place at(std::int64_t index, std::string_view form) const;

  /// Adds all places.
  void add_to(Sha256& hash) const;

 private:
  std::vector<std::int64_t>
      begins_;  ///< Of all records, with the end of its shard behind each shard's.
  std::vector<std::int64_t> first_ = {
      0};  ///< The first record of each shard, and one behind the last.
};

}  // namespace trireme::data
