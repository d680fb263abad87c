#include "trireme/data/table_records.h"

#include <algorithm>
#include <span>
#include <utility>

#include "trireme/base/sha256.h"
#include "trireme/data/named_read.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

std::string name_of(TableForm form) { return form == TableForm::kParquet ? "Parquet" : "Arrow"; }

std::string group_of(TableForm form) {
  return form == TableForm::kParquet ? "row group " : "record batch ";
}

}  // namespace

TableRecords::TableRecords(TableForm form, std::vector<std::filesystem::path> shards,
                           std::int64_t max_bytes, const TableLibrary& library)
    : form_(form), shards_(name_of(form), std::move(shards)), cache_(max_bytes) {
  for (int shard = 0; shard < shards_.size(); ++shard) add_shard(shard, library);
}

void TableRecords::add_shard(int shard, const TableLibrary& library) {
  const Descriptor file = shards_.open(shard);
  try {
    files_.push_back(library.open(form_, file.number()));
  } catch (const Error& error) {
    throw Error(error.kind(),
                name_of(form_) + " '" + shards_.path(shard).string() + "' " + error.message());
  }
  check_columns(shard);
  first_.push_back(num_records_);
  const std::vector<std::int64_t>& num_rows = files_.back()->num_rows();
  for (std::size_t group = 0; group < num_rows.size(); ++group) {
    if (num_rows[group] == 0) continue;
    groups_.push_back({.begin = num_records_, .shard = shard, .number = static_cast<int>(group)});
    num_records_ += num_rows[group];
  }
}

void TableRecords::check_columns(int shard) const {
  const std::vector<TableColumn>& columns = files_.back()->columns();
  for (auto column = columns.begin(); column != columns.end(); ++column) {
    if (std::ranges::find(columns.begin(), column, column->name, &TableColumn::name) == column)
      continue;
    throw Error(ErrorKind::kInvalidArgument, name_of(form_) + " '" + shards_.path(shard).string() +
                                                 "' has two columns '" + column->name + "'");
  }
  const std::vector<TableColumn>& expected = files_.front()->columns();
  const std::string first = "; expected the columns of '" + shards_.path(0).string() + "'";
  for (std::size_t c = 0; c < std::max(columns.size(), expected.size()); ++c) {
    if (c >= columns.size())
      shards_.refuse(shard, "has no column '" + expected[c].name + "'" + first);
    const std::string said = "has column '" + columns[c].name + "' of " + columns[c].type + first;
    if (c >= expected.size()) shards_.refuse(shard, said + ", which has none of this name");
    if (columns[c] != expected[c]) {
      shards_.refuse(shard, said + ", where column " + std::to_string(c) + " is '" +
                                expected[c].name + "' of " + expected[c].type);
    }
  }
}

TableRecords::Place TableRecords::place(std::int64_t index) const {
  if (index < 0 || index >= num_records_) {
    throw Error(ErrorKind::kInvalidArgument, name_of(form_) + ": there is no record " +
                                                 std::to_string(index) + " among " +
                                                 std::to_string(num_records_));
  }
  const Group& group = *(std::ranges::upper_bound(groups_, index, {}, &Group::begin) - 1);
  return {.group = group,
          .row = index - group.begin,
          .number = index - first_[static_cast<std::size_t>(group.shard)]};
}

std::vector<std::string> TableRecords::fields(std::int64_t index) const {
  place(index);
  std::vector<std::string> names;
  for (const TableColumn& column : files_.front()->columns()) names.push_back(column.name);
  return names;
}

int TableRecords::column(std::int64_t index, std::string_view field) const {
  const std::vector<TableColumn>& columns = files_.front()->columns();
  const auto column = std::ranges::find(columns, field, &TableColumn::name);
  if (column == columns.end()) {
    std::string names;
    for (const TableColumn& other : columns) names += " " + other.name;
    throw Error(ErrorKind::kInvalidArgument,
                name(index) + " has no field '" + std::string(field) + "'; it has" + names);
  }
  if (!column->is_read) {
    throw Error(ErrorKind::kInvalidArgument,
                name(index) + ": field '" + column->name + "' is of type " + column->type +
                    ", which is not read; expected text, bytes, numbers, or lists of numbers");
  }
  return static_cast<int>(column - columns.begin());
}

ColumnCache::Values TableRecords::values(const Place& place, int column) const {
  const auto [begin, shard, group] = place.group;
  const TableFile& file = *files_[static_cast<std::size_t>(shard)];
  // Pages of a file that has got shorter are not touched.
  Descriptor opened = file.is_mapped() ? shards_.open(shard) : Descriptor();
  return cache_.get(
      {.shard = shard, .group = group, .column = column}, [&]() -> ColumnCache::Values {
        if (!opened.is_open()) opened = shards_.open(shard);
        auto values = file.read(opened.number(), group, column);
        const std::int64_t expected = file.num_rows()[static_cast<std::size_t>(group)];
        if (values->num_rows() == expected) return values;
        throw Error(ErrorKind::kCorruptData, "it has " + std::to_string(values->num_rows()) +
                                                 " rows; expected " + std::to_string(expected));
      });
}

std::vector<std::byte> TableRecords::read(std::int64_t index, std::string_view field) const {
  const Place where = place(index);
  const int wanted = column(index, field);
  return read_for(*this, index, field, [&] {
    try {
      return values(where, wanted)->read(where.row);
    } catch (const Error& error) {
      const bool names_file =
          error.message().find(shards_.path(where.group.shard).string()) != std::string::npos;
      if (error.kind() != ErrorKind::kCorruptData || names_file) throw;
      throw Error(error.kind(),
                  name(index) + ", " + group_of(form_) + std::to_string(where.group.number) +
                      ": field '" + std::string(field) + "' of type " +
                      files_.front()->columns()[static_cast<std::size_t>(wanted)].type + " " +
                      error.message());
    }
  });
}

std::string TableRecords::name(std::int64_t index) const {
  const Place where = place(index);
  return "record " + std::to_string(where.number) + " of '" +
         shards_.path(where.group.shard).string() + "'";
}

std::string TableRecords::identity() const {
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.add(std::as_bytes(std::span(text))); };
  add(name_of(form_) + "\n");
  for (const TableColumn& column : files_.front()->columns()) {
    add(std::to_string(column.name.size()) + " " + column.name + " " + column.type + "\n");
  }
  for (int shard = 0; shard < shards_.size(); ++shard) {
    add(std::to_string(shards_.num_bytes(shard)));
    for (const std::int64_t rows : files_[static_cast<std::size_t>(shard)]->num_rows()) {
      add(" " + std::to_string(rows));
    }
    add("\n");
  }
  return hash.finish();
}

}  // namespace trireme::data
