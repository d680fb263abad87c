#include "trireme/data/field_kinds.h"

#include "trireme/error.h"

namespace trireme::data {

void FieldKinds::learn(std::int64_t index, std::string_view field, std::string_view kind) {
  if (!kind.empty()) known_.try_emplace(std::string(field), std::string(kind), index);
}

void FieldKinds::check(const RecordSource& records, std::string_view field,
                       std::string_view kind) const {
  const auto known = known_.find(field);
  if (kind.empty() || known == known_.end() || known->second.kind == kind) return;
  throw Error(ErrorKind::kCorruptData, "field '" + std::string(field) + "' is " +
                                           std::string(kind) + "; expected " + known->second.kind +
                                           ", as in " + records.name(known->second.index) +
                                           "; write the files alike");
}

}  // namespace trireme::data
