#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/base/sha256.h"
#include "trireme/data.h"
#include "trireme/data/check_read.h"
#include "trireme/data/first_fit.h"
#include "trireme/data/padding.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr std::int64_t kMostInRow = std::int64_t{1} << 31;  // segments and positions are i32

void require_pack(bool condition, const std::string& problem) {
  if (!condition) throw Error(ErrorKind::kInvalidArgument, "pack: " + problem);
}

/// The dimension of a field in which samples stand behind each other: its name, or nothing.
std::string packed_dimension(const Field& field) {
  if (field.varying.empty()) return {};
  require_pack(field.varying.size() == 1 && field.varying.contains(0),
               "field '" + field.name +
                   "' has a dimension that differs and is not its first; only the first may");
  return field.varying.at(0);
}

/// Of the longest sample where none are named.
Lengths row_lengths_of(const Source& source, const PackOptions& options) {
  const auto padded = source.padded_lengths();
  require_pack(!padded.empty(),
               "no dimension of the source differs in length; there is nothing to pack");
  if (options.row.empty()) return padded.back();
  require_pack(std::ranges::equal(options.row, padded.back(), {}, &Lengths::value_type::first,
                                  &Lengths::value_type::first),
               "a row is to have " + lengths_text(options.row) +
                   "; expected a length for each dimension of the source that differs: " +
                   lengths_text(padded.back()));
  for (const auto& [name, length] : options.row) {
    require_pack(length >= 1 && length < kMostInRow,
                 fmt::format("a row of {} '{}'; expected 1 to 2^31 - 1", length, name));
  }
  return options.row;
}

/// Which samples share a row.
PackedRows fill_rows(const Source& source, const Lengths& row, const PackOptions& options) {
  std::vector<std::int64_t> row_lengths, own(row.size());
  for (const auto& [name, length] : row) row_lengths.push_back(length);
  FirstFit fit(row_lengths, options.max_segments, options.open_rows);
  for (std::int64_t index = 0; index < source.num_samples(); ++index) {
    const Lengths lengths = source.lengths_of({.index = index});
    for (std::size_t d = 0; const auto& [name, length] : row) {
      const auto found = lengths.find(name);
      require_pack(found != lengths.end() && found->second >= 0,
                   fmt::format("sample {} does not say how long its '{}' is", index, name));
      require_pack(
          found->second <= length,
          fmt::format("sample {} has {} '{}', a row {}; make rows longer or samples shorter", index,
                      found->second, name, length));
      own[d++] = found->second;
    }
    fit.add(own);
  }
  return fit.finish();
}

/// A field of a row that none of the source has.
Field added_field(const std::string& name, std::int64_t length) {
  return {.name = name, .dtype = Dtype::kI32, .shape = {length}};
}

void write_number(std::span<std::byte> field, std::int64_t place, std::int64_t value) {
  const auto number = static_cast<std::int32_t>(value);
  std::memcpy(field.data() + static_cast<std::size_t>(place) * sizeof number, &number,
              sizeof number);
}

class Packed : public Source {
 public:
  Packed(std::shared_ptr<const Source> source, const PackOptions& options)
      : source_(std::move(source)),
        options_(options),
        row_(row_lengths_of(*source_, options)),
        rows_(fill_rows(*source_, row_, options)) {
    for (Field field : source_->fields()) {
      dimensions_.push_back(packed_dimension(field));
      field.varying.clear();
      if (dimensions_.back().empty()) {
        field.shape.insert(field.shape.begin(), options.max_segments);
      } else {
        field.shape[0] = row_.at(dimensions_.back());
      }
      add(std::move(field));
    }
    for (const auto& [name, length] : row_) {
      add(added_field(name + "_segments", length));
      add(added_field(name + "_positions", length));
      add(added_field(name + "_lengths", options.max_segments));
    }
  }

  std::int64_t num_samples() const override { return rows_.num_rows(); }
  const std::vector<Field>& fields() const override { return fields_; }

  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override {
    check_read("pack", *this, sample, destinations);
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      pad(fields_[f], {}, {}, destinations[f], fields_[f].shape);
    }
    Lengths filled;
    for (std::int64_t segment = 0; const std::int64_t index : rows_.row(sample.index)) {
      const Sample own{.index = index, .visit = sample.visit};
      const Lengths lengths = source_->lengths_of(own);
      read_segment(own, segment, {filled, lengths}, destinations);
      ++segment;
      for (const auto& [name, length] : row_) filled[name] += lengths.at(name);
    }
  }

  void will_read(std::span<const Sample> samples) const override {
    std::vector<Sample> own;
    for (const Sample& sample : samples) {
      require_pack(sample.index >= 0 && sample.index < num_samples(),
                   fmt::format("there is no row {} among {}", sample.index, num_samples()));
      for (const std::int64_t index : rows_.row(sample.index)) {
        own.push_back({.index = index, .visit = sample.visit});
      }
    }
    source_->will_read(own);
  }

  std::string reading() const override { return source_->reading(); }

  std::string identity() const override {
    return sha256(fmt::format("packed to {}, {} at most, {} open {}", lengths_text(row_),
                              options_.max_segments, options_.open_rows, fingerprint(*source_)));
  }

 private:
  /// Where a sample lies in its row, in each dimension.
  struct Place {
    Lengths begin, length;
  };

  void add(Field field) {
    for (const Field& other : fields_) {
      require_pack(other.name != field.name,
                   "the source has a field '" + field.name +
                       "', as one of a row is called; give it another name");
    }
    fields_.push_back(std::move(field));
  }

  /// The source writes each field of the sample to its place in the row.
  void read_segment(Sample sample, std::int64_t segment, Place place,
                    std::span<const std::span<std::byte>> row) const {
    for (const auto& [name, length] : row_) {
      const auto own = place.length.find(name);
      require_pack(
          own != place.length.end() && own->second >= 0 &&
              own->second <= length - place.begin[name],
          fmt::format("sample {} has other lengths than when its row was made; they may not "
                      "depend on the visit",
                      sample.index));
    }
    std::vector<std::span<std::byte>> parts;
    const auto& fields = source_->fields();
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const std::string& name = dimensions_[f];
      const std::size_t step = row[f].size() / static_cast<std::size_t>(fields_[f].shape[0]);
      const std::int64_t begin = name.empty() ? segment : place.begin[name];
      const std::int64_t length = name.empty() ? 1 : place.length[name];
      parts.push_back(row[f].subspan(static_cast<std::size_t>(begin) * step,
                                     static_cast<std::size_t>(length) * step));
    }
    source_->read(sample, parts);
    std::size_t f = fields.size();
    for (const auto& [name, _] : row_) {
      for (std::int64_t i = 0; i < place.length[name]; ++i) {
        write_number(row[f], place.begin[name] + i, segment + 1);
        write_number(row[f + 1], place.begin[name] + i, i);
      }
      write_number(row[f + 2], segment, place.length[name]);
      f += 3;
    }
  }

  std::shared_ptr<const Source> source_;
  PackOptions options_;
  Lengths row_;
  PackedRows rows_;
  std::vector<std::string> dimensions_;  // of each field of the source; empty: one value a sample
  std::vector<Field> fields_;            // the source's, then three for each dimension of a row
};

}  // namespace

std::shared_ptr<const Source> pack(std::shared_ptr<const Source> source,
                                   const PackOptions& options) {
  require_pack(source != nullptr, "there is no source");
  require_pack(source->repeats().times != 0,
               "the source has an order of its own, visit by visit; pack its parts instead");
  require_pack(source->repeats().times == 1,
               "the source repeats its samples; repeat the packed rows instead");
  require_pack(
      options.max_segments >= 1 && options.max_segments < kMostInRow && options.open_rows >= 1,
      fmt::format("{} samples of a row at most, {} open rows; expected 1 or more of each",
                  options.max_segments, options.open_rows));
  check_padding(*source);
  return std::make_shared<Packed>(std::move(source), options);
}

}  // namespace trireme::data
