#include "trireme/data/record_index.h"

#include <algorithm>
#include <span>
#include <string>

#include "trireme/error.h"

namespace trireme::data {

std::int64_t RecordIndex::finish_shard(std::int64_t end) {
  const std::int64_t before = first_.back();
  begins_.push_back(end);
  first_.push_back(std::ssize(begins_) - std::ssize(first_));
  return first_.back() - before;
}

RecordIndex::Place RecordIndex::at(std::int64_t index, std::string_view form) const {
  if (index < 0 || index >= num_records()) {
    throw Error(ErrorKind::kInvalidArgument, std::string(form) + ": there is no record " +
                                                 std::to_string(index) + " among " +
                                                 std::to_string(num_records()));
  }
  const auto next = std::ranges::upper_bound(first_, index);
  const auto shard = next - first_.begin() - 1;
  const auto begin = begins_.begin() + index + shard;  // each shard before has its end there, too
  return {.shard = static_cast<int>(shard),
          .number = index - *(next - 1),
          .begin = begin[0],
          .end = begin[1]};
}

void RecordIndex::add_to(Sha256& hash) const {
  hash.add(std::as_bytes(std::span(first_)));
  hash.add(std::as_bytes(std::span(begins_)));
}

}  // namespace trireme::data
