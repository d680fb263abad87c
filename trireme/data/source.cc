#include <algorithm>
#include <cstring>
#include <set>

#include "trireme/base/sha256.h"
#include "trireme/data.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "data source: " + problem);
}

/// A field in words that no other field has; the name may hold anything.
std::string description(const Field& field) {
  std::string text = std::to_string(field.name.size()) + " " + field.name + " ";
  text += to_text(field.dtype);
  for (const std::int64_t dim : field.shape) text += " " + std::to_string(dim);
  return text + "\n";
}

}  // namespace

std::int64_t Field::num_bytes() const {
  auto bytes = static_cast<std::int64_t>(size_bytes(dtype));
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) {
      fail("field '" + name + "': its shape has a negative dimension or exceeds 64 bits");
    }
  }
  return bytes;
}

InMemorySource::InMemorySource(std::int64_t num_samples, std::vector<Column> columns)
    : num_samples_(num_samples) {
  if (num_samples < 0) fail("the number of samples is " + std::to_string(num_samples));
  if (columns.empty()) fail("there are no fields");
  std::set<std::string> names;
  for (Column& column : columns) {
    const std::string& name = column.field.name;
    if (!names.insert(name).second) fail("field '" + name + "' appears twice");
    std::int64_t total = column.field.num_bytes();
    bytes_.push_back(total);
    if (__builtin_mul_overflow(total, num_samples, &total)) {
      fail("field '" + name + "': its data exceeds 64 bits");
    }
    if (total > 0 && !column.data) fail("field '" + name + "': it has no data");
    fields_.push_back(std::move(column.field));
    data_.push_back(std::move(column.data));
  }
}

std::string fingerprint(const Source& source) {
  if (std::string identity = source.identity(); !identity.empty()) return identity;
  constexpr std::int64_t kMost = 64;
  Sha256 hash;
  const auto add_text = [&](const std::string& text) { hash.add(std::as_bytes(std::span(text))); };
  const std::int64_t num_samples = source.num_samples();
  add_text(std::to_string(num_samples) + "\n");
  std::vector<std::vector<std::byte>> fields;
  for (const Field& field : source.fields()) {
    add_text(description(field));
    fields.emplace_back(static_cast<std::size_t>(field.num_bytes()));
  }
  const std::vector<std::span<std::byte>> destinations(fields.begin(), fields.end());
  const std::int64_t num_read = std::min(num_samples, kMost);
  for (std::int64_t i = 0; i < num_read; ++i) {
    // First and last among them; no overflow: i < 64.
    const std::int64_t last = num_samples - 1, parts = std::max<std::int64_t>(num_read - 1, 1);
    source.read({last / parts * i + last % parts * i / parts}, destinations);
    for (const std::span<std::byte> field : destinations) hash.add(field);
  }
  return "sampled " + hash.finish();
}

std::string InMemorySource::identity() const {
  Sha256 hash;
  const auto add_text = [&](const std::string& text) { hash.add(std::as_bytes(std::span(text))); };
  add_text(std::to_string(num_samples_) + "\n");
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    add_text(description(fields_[f]));
    const auto* begin = static_cast<const std::byte*>(data_[f].get());
    hash.add({begin, static_cast<std::size_t>(bytes_[f] * num_samples_)});
  }
  return hash.finish();
}

void InMemorySource::read(Sample sample, std::span<const std::span<std::byte>> destinations) const {
  const std::int64_t index = sample.index;
  if (index < 0 || index >= num_samples_) {
    fail("there is no sample " + std::to_string(index) + " among " + std::to_string(num_samples_));
  }
  if (destinations.size() != fields_.size()) {
    fail("expected " + std::to_string(fields_.size()) + " destinations, got " +
         std::to_string(destinations.size()));
  }
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (static_cast<std::int64_t>(destinations[f].size()) != bytes_[f]) {
      fail("field '" + fields_[f].name + "': expected a destination of " +
           std::to_string(bytes_[f]) + " bytes, got " + std::to_string(destinations[f].size()));
    }
    if (bytes_[f] == 0) continue;
    const auto* begin = static_cast<const std::byte*>(data_[f].get()) + index * bytes_[f];
    std::memcpy(destinations[f].data(), begin, destinations[f].size());
  }
}

}  // namespace trireme::data
