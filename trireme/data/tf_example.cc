#include "trireme/data/tf_example.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

#include "trireme/error.h"

namespace trireme::data {
namespace {

using Bytes = std::span<const std::byte>;

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

[[noreturn]] void refuse_example(const std::string& problem) {
  throw Error(ErrorKind::kCorruptData, problem);
}

/// How a field's value is encoded.
enum class WireType : std::uint8_t { kVarint = 0, k64 = 1, kLength = 2, k32 = 5 };

struct WireField {
  std::uint64_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t varint = 0;  ///< Of kVarint.
  Bytes bytes;               ///< Of all others.
};

std::uint64_t take_varint(Bytes& message) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !message.empty(); shift += 7) {
    const auto byte = static_cast<std::uint64_t>(message.front());
    message = message.subspan(1);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  refuse_example("is no tf.train.Example: a number in it does not end");
}

Bytes take_bytes(Bytes& message, std::uint64_t count) {
  if (count > message.size()) refuse_example("is no tf.train.Example: a part of it ends behind it");
  const Bytes bytes = message.first(count);
  message = message.subspan(count);
  return bytes;
}

std::optional<WireField> take_field(Bytes& message) {
  if (message.empty()) return std::nullopt;
  const std::uint64_t key = take_varint(message);
  WireField field{.number = key >> 3, .type = static_cast<WireType>(key & 7)};
  switch (field.type) {
    case WireType::kVarint:
      field.varint = take_varint(message);
      return field;
    case WireType::k64:
      field.bytes = take_bytes(message, 8);
      return field;
    case WireType::kLength:
      field.bytes = take_bytes(message, take_varint(message));
      return field;
    case WireType::k32:
      field.bytes = take_bytes(message, 4);
      return field;
  }
  refuse_example("is no tf.train.Example: it has a field of kind " + std::to_string(key & 7));
}

/// Calls `take` for each part `number` of a message; parts of other numbers, which newer writers may add, are left out.
template <typename Take>
void each_part(Bytes message, std::uint64_t number, Take take) {
  while (const auto field = take_field(message)) {
    if (field->number == number && field->type == WireType::kLength) take(field->bytes);
  }
}

void append(std::vector<std::byte>& values, Bytes more) {
  values.insert(values.end(), more.begin(), more.end());
}

void append_int(std::vector<std::byte>& values, std::uint64_t value) {
  append(values, std::as_bytes(std::span(&value, 1)));
}

/// Numbers stand alone or, as most writers have it, packed.
std::vector<std::byte> ints_of(Bytes list) {
  std::vector<std::byte> values;
  while (auto field = take_field(list)) {
    if (field->number != 1) continue;
    if (field->type == WireType::kVarint) append_int(values, field->varint);
    while (!field->bytes.empty()) append_int(values, take_varint(field->bytes));
  }
  return values;
}

std::vector<std::byte> floats_of(Bytes list) {
  std::vector<std::byte> values;
  while (const auto field = take_field(list)) {
    if (field->number != 1) continue;
    if (field->bytes.size() % sizeof(float) != 0) refuse_example("has a float that is cut off");
    append(values, field->bytes);
  }
  return values;
}

std::vector<std::byte> single_bytes_of(Bytes list) {
  std::vector<Bytes> values;
  each_part(list, 1, [&](Bytes value) { values.push_back(value); });
  if (values.size() != 1) {
    refuse_example("is a list of " + std::to_string(values.size()) + " texts; expected one");
  }
  return {values.front().begin(), values.front().end()};
}

/// The list that a feature is; nothing where it is empty.
std::optional<WireField> feature_list(Bytes feature) {
  while (const auto list = take_field(feature)) {
    if (list->type == WireType::kLength) return list;
  }
  return std::nullopt;
}

}  // namespace

TfExample::TfExample(Bytes message) {
  const auto take_entry = [&](Bytes entry) {
    Feature feature;
    each_part(entry, 1, [&](Bytes key) {
      feature.name = {reinterpret_cast<const char*>(key.data()), key.size()};
    });
    each_part(entry, 2, [&](Bytes value) { feature.message = value; });
    std::erase_if(features_, [&](const Feature& other) { return other.name == feature.name; });
    features_.push_back(feature);
  };
  each_part(message, 1, [&](Bytes features) { each_part(features, 1, take_entry); });
}

std::vector<std::string> TfExample::names() const {
  std::vector<std::string> names;
  for (const Feature& feature : features_) names.emplace_back(feature.name);
  return names;
}

std::vector<std::byte> TfExample::read(std::string_view name) const {
  const auto feature = std::ranges::find(features_, name, &Feature::name);
  if (feature == features_.end()) {
    std::string there;
    for (const Feature& other : features_) there += " " + std::string(other.name);
    throw Error(ErrorKind::kInvalidArgument, "has no field '" + std::string(name) + "'; it has" +
                                                 (there.empty() ? " none" : there));
  }
  try {
    const auto list = feature_list(feature->message);
    if (!list) refuse_example("is empty");
    if (list->number == 1) return single_bytes_of(list->bytes);
    auto values = list->number == 2 ? floats_of(list->bytes) : ints_of(list->bytes);
    if (values.empty()) refuse_example("is a list without numbers");
    return values;
  } catch (const Error& error) {
    throw Error(error.kind(), "field '" + std::string(name) + "' " + error.message());
  }
}

std::string_view TfExample::kind_of(std::string_view name) const {
  const auto feature = std::ranges::find(features_, name, &Feature::name);
  if (feature == features_.end()) return {};
  const auto list = feature_list(feature->message);
  if (!list) return {};
  return list->number == 1 ? "bytes" : list->number == 2 ? "floats" : "integers";
}

}  // namespace trireme::data
