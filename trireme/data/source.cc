#include <algorithm>
#include <cstring>
#include <iterator>
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
  for (const auto& [dim, name] : field.varying) text += " " + std::to_string(dim) + "=" + name;
  if (field.padding != 0) text += " " + std::to_string(field.padding);
  return text + "\n";
}

std::int64_t bytes_of(const Field& field, const std::vector<std::int64_t>& shape) {
  auto bytes = static_cast<std::int64_t>(size_bytes(field.dtype));
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) {
      fail("field '" + field.name + "': its shape has a negative dimension or exceeds 64 bits");
    }
  }
  return bytes;
}

}  // namespace

std::vector<std::int64_t> Field::shape_at(const Lengths& lengths) const {
  std::vector<std::int64_t> result = shape;
  for (const auto& [dim, called] : varying) {
    const auto length = lengths.find(called);
    if (dim < 0 || dim >= std::ssize(shape) || length == lengths.end()) {
      fail("field '" + name + "': dimension " + std::to_string(dim) +
           " has no length, or is none of its " + std::to_string(shape.size()));
    }
    if (length->second < 0 || length->second > shape[dim]) {
      fail("field '" + name + "': dimension " + std::to_string(dim) + " is " +
           std::to_string(length->second) + " long (" + called + "); it may be 0 to " +
           std::to_string(shape[dim]));
    }
    result[dim] = length->second;
  }
  return result;
}

std::int64_t Field::num_bytes() const { return bytes_of(*this, shape); }

std::int64_t Field::num_bytes(const Lengths& lengths) const {
  return bytes_of(*this, shape_at(lengths));
}

Lengths Source::lengths_of(Sample) const { return {}; }

void Source::will_read(std::span<const Sample>) const {}

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

namespace {

/// Its fields.
std::vector<std::vector<std::byte>> read_sample(const Source& source, Sample sample) {
  const Lengths lengths = source.lengths_of(sample);
  std::vector<std::vector<std::byte>> fields;
  for (const Field& field : source.fields()) {
    fields.emplace_back(static_cast<std::size_t>(field.num_bytes(lengths)));
  }
  source.read(sample, std::vector<std::span<std::byte>>(fields.begin(), fields.end()));
  return fields;
}

}  // namespace

std::string fingerprint(const Source& source) {
  if (std::string identity = source.identity(); !identity.empty()) return identity;
  constexpr std::int64_t kMost = 64;
  Sha256 hash;
  const auto add_text = [&](const std::string& text) { hash.add(std::as_bytes(std::span(text))); };
  const std::int64_t num_samples = source.num_samples();
  add_text(std::to_string(num_samples) + "\n");
  for (const Field& field : source.fields()) add_text(description(field));
  const std::int64_t num_read = std::min(num_samples, kMost);
  for (std::int64_t i = 0; i < num_read; ++i) {
    // First and last among them; no overflow: i < 64.
    const std::int64_t last = num_samples - 1, parts = std::max<std::int64_t>(num_read - 1, 1);
    for (const auto& field : read_sample(source, {last / parts * i + last % parts * i / parts})) {
      hash.add(field);
    }
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
