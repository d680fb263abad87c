#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trireme/data.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::readers {

/// Ranks that train ask, ranks that read answer: each pair has two streams of messages, in order.
///
///     request   source, then index and visit of each sample; source kEnd: no more of them
///     answer    kWhole, then the samples' bytes, field after field, sample after sample; or the kind of an error, then
///               its text
///
/// All numbers i64 in the machine's order: ranks of one world are of one kind of machine.
inline constexpr std::int64_t kEnd = -1;
inline constexpr std::int64_t kWhole = -1;

struct SampleTags {
  transport::Tag request;
  transport::Tag answer;
};

/// Of a service; every rank of the world calls it once for each.
inline SampleTags next_tags(transport::Endpoint& endpoint) {
  constexpr transport::Tag kSamples = transport::Tag{1} << 62 | transport::Tag{1} << 60;
  const transport::Tag first = kSamples | endpoint.count_use(kSamples) << 3;
  return {first, first | 1};
}

inline std::vector<std::int64_t> request_words(std::int64_t source,
                                               std::span<const data::Sample> samples) {
  std::vector<std::int64_t> words = {source};
  for (const data::Sample& sample : samples) {
    words.push_back(sample.index);
    words.push_back(sample.visit);
  }
  return words;
}

/// Bytes of one sample, all fields together. Errors of `lengths_of`.
inline std::int64_t num_bytes(const data::Source& source, data::Sample sample) {
  const data::Lengths lengths = source.lengths_of(sample);
  std::int64_t bytes = 0;
  for (const data::Field& field : source.fields()) bytes += field.num_bytes(lengths);
  return bytes;
}

}  // namespace trireme::readers
