#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::readers {

/// Ranks that train ask, ranks that read answer: each pair has two streams of messages, in order.
///
///     request   source, then index and visit of each sample; or kCompare, source, and what `text_of` says of it; or kEnd:
///               no more of them
///     answer    kWhole, what reading them took (SampleCost), how many bytes each sample has, then these, field after field,
///               sample after sample; kWhole alone to what asks for none; or kError, then the error as bytes (wire/system)
///
/// All numbers i64 in the machine's order: ranks of one world are of one kind of machine.
inline constexpr std::int64_t kEnd = -1, kCompare = -2;
inline constexpr std::int64_t kWhole = 0, kError = 1;

/// What reading the samples of an answer took, over all threads that read them.
struct SampleCost {
  std::int64_t decode_ns = 0;  ///< Where the source says it ("decode").
  std::int64_t num_bytes = 0;  ///< Of files, likewise.
};

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

/// What tells data apart. Errors of `identity`; its cost.
inline std::string text_of(const data::Source& source) {
  std::string fields;
  for (const data::Field& field : source.fields())
    fields += " " + field.name + " " + std::to_string(field.num_bytes());
  for (const data::Lengths& lengths : source.padded_lengths()) {
    for (const auto& [name, length] : lengths) fields += " " + name + "=" + std::to_string(length);
  }
  return std::to_string(source.num_samples()) + " samples of" + fields + " " + source.identity();
}

/// A text in words, and back; zeros fill the last one.
inline std::vector<std::int64_t> compare_words(std::int64_t source, const std::string& text) {
  std::vector<std::int64_t> words(2 + (text.size() + 7) / 8);
  words[0] = kCompare;
  words[1] = source;
  std::memcpy(words.data() + 2, text.data(), text.size());
  return words;
}

inline std::string compared_text(std::span<const std::int64_t> words) {
  const auto bytes = std::as_bytes(words.subspan(2));
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

/// Bytes of one sample, all fields together. Errors of `lengths_of`.
inline std::int64_t num_bytes(const data::Source& source, data::Sample sample) {
  const data::Lengths lengths = source.lengths_of(sample);
  std::int64_t bytes = 0;
  for (const data::Field& field : source.fields()) bytes += field.num_bytes(lengths);
  return bytes;
}

}  // namespace trireme::readers
