#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "trireme/data.h"

namespace trireme::data {

/// What kind of value each field has, by the first record that was learned and has one: so that a shard whose fields are of other
/// kinds is noticed. Kinds are words, as `a number`; none is no value, which goes with any.
class FieldKinds {
 public:
  /// Remembers the kind of a field that is not known yet. Fields that nobody reads may be of any kinds.
  void learn(std::int64_t index, std::string_view field, std::string_view kind);

  /// Errors   kCorruptData where the field is of another kind than that which was learned; the message names field and kinds, and
  ///          the record that was learned, but not this one. A field that is not known has no kind.
  void check(const RecordSource& records, std::string_view field, std::string_view kind) const;

 private:
  struct Known {
    std::string kind;
    std::int64_t index = 0;  ///< Of the record that was learned.
  };
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace trireme::data
