#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/base/json.h"

namespace trireme::data {

template <typename Number>
std::string mds_number(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

/// Encoded values, by column.
using MdsSample = std::vector<std::string>;

struct MdsColumn {
  std::string name, encoding;
  int bytes = -1;  ///< Below 0: values differ.
};

/// A shard as a file.
inline std::string mds_shard(const std::vector<MdsColumn>& columns,
                             const std::vector<MdsSample>& samples) {
  const std::string between = "{}";  // writers put the columns there
  auto at = static_cast<std::uint32_t>(4 * (samples.size() + 2) + between.size());
  std::string head = mds_number(static_cast<std::uint32_t>(samples.size()));
  head += mds_number(at);
  std::string body;
  for (const MdsSample& sample : samples) {
    std::string sizes, values;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].bytes < 0) {
        sizes += mds_number(static_cast<std::uint32_t>(sample[c].size()));
      }
      values += sample[c];
    }
    body += sizes + values;
    head += mds_number(at + static_cast<std::uint32_t>(body.size()));
  }
  return head + between + body;
}

/// Its entry in the index.
inline Json mds_entry(const std::string& name, const std::vector<MdsColumn>& columns,
                      std::size_t num_samples, std::size_t bytes) {
  Json entry = {{"version", 2}, {"format", "mds"}, {"samples", num_samples}};
  entry["raw_data"] = {{"basename", name}, {"bytes", bytes}, {"hashes", Json::object()}};
  entry["zip_data"] = nullptr;
  entry["compression"] = nullptr;
  for (const MdsColumn& column : columns) {
    entry["column_names"].push_back(column.name);
    entry["column_encodings"].push_back(column.encoding);
    entry["column_sizes"].push_back(column.bytes < 0 ? Json() : Json(column.bytes));
  }
  return entry;
}

/// `index.json` of a folder of shards.
inline std::string mds_index(const std::vector<Json>& entries) {
  return compact_text({{"version", 2}, {"shards", entries}});
}

}  // namespace trireme::data
