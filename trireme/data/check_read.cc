#include "trireme/data/check_read.h"

#include <fmt/format.h>

#include <cstdint>

#include "trireme/error.h"

namespace trireme::data {

void check_read(const std::string& what, const Source& source, Sample sample,
                std::span<const std::span<std::byte>> destinations) {
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::kInvalidArgument, what + ": " + problem);
  };
  if (sample.index < 0 || sample.index >= source.num_samples()) {
    refuse(fmt::format("there is no sample {} among {}", sample.index, source.num_samples()));
  }
  const auto& fields = source.fields();
  if (destinations.size() != fields.size()) {
    refuse(fmt::format("expected {} destinations, got {}", fields.size(), destinations.size()));
  }
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::int64_t expected = fields[f].num_bytes();
    if (std::ssize(destinations[f]) == expected) continue;
    refuse(fmt::format("expected a destination of {} bytes for '{}', got {}", expected,
                       fields[f].name, destinations[f].size()));
  }
}

}  // namespace trireme::data
