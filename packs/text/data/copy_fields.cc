#include "packs/text/data/copy_fields.h"

#include <algorithm>
#include <cstring>

#include "trireme/error.h"

namespace trireme::text {

void copy_fields(const std::vector<data::Field>& fields, const std::vector<FieldNumbers>& values,
                 std::span<const std::span<std::byte>> destinations, const std::string& origin,
                 const data::Lengths& lengths) {
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::kInvalidArgument, origin + ": " + problem);
  };
  if (destinations.size() != fields.size()) {
    refuse("expected " + std::to_string(fields.size()) + " destinations, got " +
           std::to_string(destinations.size()));
  }
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto expected = static_cast<std::size_t>(fields[f].num_bytes(lengths));
    if (destinations[f].size() != expected) {
      refuse("expected a destination of " + std::to_string(expected) + " bytes for '" +
             fields[f].name + "', got " + std::to_string(destinations[f].size()));
    }
    std::vector<std::int32_t> padded(expected / sizeof(std::int32_t), values[f].rest);
    std::copy(values[f].numbers.begin(), values[f].numbers.end(), padded.begin());
    std::memcpy(destinations[f].data(), padded.data(), expected);
  }
}

std::vector<data::Lengths> padded_to(const std::string& name,
                                     const std::vector<std::int64_t>& shorter,
                                     std::int64_t longest) {
  if (shorter.empty()) return {};
  std::vector<data::Lengths> padded;
  std::int64_t last = 0;
  for (const std::int64_t length : shorter) {
    if (length <= last || length >= longest) {
      throw Error(ErrorKind::kInvalidArgument,
                  "padded lengths of " + name + " ascend and stay below the longest, " +
                      std::to_string(longest) + "; got " + std::to_string(length) + " after " +
                      std::to_string(last));
    }
    padded.push_back({{name, last = length}});
  }
  padded.push_back({{name, longest}});
  return padded;
}

std::map<int, std::string> varying_first(const std::string& name,
                                         const std::vector<data::Lengths>& padded) {
  if (padded.empty()) return {};
  return {{0, name}};
}

}  // namespace trireme::text
