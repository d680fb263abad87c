#include "trireme/data/arrow/parquet_file.h"

#include <arrow/io/file.h>
#include <arrow/table.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "trireme/base/system_error.h"
#include "trireme/data/arrow/columns.h"
#include "trireme/data/arrow/status.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

using Footer = std::shared_ptr<parquet::FileMetaData>;

/// What Parquet's library throws becomes an Error.
template <typename Action>
auto translated(const std::string& what, Action action) {
  try {
    return action();
  } catch (const parquet::ParquetStatusException& error) {
    throw_status(error.status(), what);
  } catch (const parquet::ParquetException& error) {
    throw Error(ErrorKind::kCorruptData, "cannot be " + what + ": " + error.what());
  }
}

/// Decodes on the calling thread: samples are read on several already.
std::unique_ptr<parquet::arrow::FileReader> reader_of(int descriptor, Footer footer) {
  const int own = ::dup(descriptor);
  if (own < 0) throw_system_error("open it once more", errno);
  auto file = value_of(arrow::io::ReadableFile::Open(own), "opened");  // which closes it
  parquet::ReaderProperties properties;
  properties.set_page_checksum_verification(true);
  parquet::ArrowReaderProperties columns(/*use_threads=*/false);
  columns.set_pre_buffer(false);
  return value_of(
      parquet::arrow::FileReader::Make(
          arrow::default_memory_pool(),
          parquet::ParquetFileReader::Open(std::move(file), properties, std::move(footer)),
          columns),
      "opened");
}

void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const auto& child : field.children) add_leaves(child, leaves);
}

/// Of a column of records, those of the file.
std::vector<int> leaves_of(const ArrowColumn& column,
                           const parquet::arrow::SchemaManifest& manifest) {
  const auto* field = &manifest.schema_fields.at(static_cast<std::size_t>(column.field));
  for (const int step : column.steps) field = &field->children.at(static_cast<std::size_t>(step));
  std::vector<int> leaves;
  add_leaves(*field, leaves);
  return leaves;
}

class ParquetFile : public TableFile {
 public:
  explicit ParquetFile(int descriptor) {
    const auto reader = reader_of(descriptor, nullptr);
    footer_ = reader->parquet_reader()->metadata();
    std::shared_ptr<arrow::Schema> schema;
    check_status(reader->GetSchema(&schema), "opened");
    for (ArrowColumn& column : columns_of(*schema)) {
      leaves_.push_back(leaves_of(column, reader->manifest()));
      depths_.push_back(column.steps.size());
      columns_.push_back(std::move(column.column));
    }
    std::int64_t total = 0;
    for (int group = 0; group < footer_->num_row_groups(); ++group) {
      num_rows_.push_back(footer_->RowGroup(group)->num_rows());
      total += num_rows_.back();
      if (num_rows_.back() >= 0 && total <= footer_->num_rows()) continue;
      throw Error(ErrorKind::kCorruptData,
                  "is damaged: its row groups have other rows than it has");
    }
  }

  const std::vector<TableColumn>& columns() const override { return columns_; }
  const std::vector<std::int64_t>& num_rows() const override { return num_rows_; }
  bool is_mapped() const override { return false; }

  std::unique_ptr<const ColumnValues> read(int descriptor, int group, int column) const override {
    const auto c = static_cast<std::size_t>(column);
    return translated("decoded", [&] {
      const auto reader = reader_of(descriptor, footer_);
      const auto table = value_of(reader->ReadRowGroup(group, leaves_[c]), "decoded");
      arrow::ArrayVector arrays;
      // Of each struct above there is but one field left.
      const std::vector<int> steps(depths_[c], 0);
      for (const auto& chunk : table->column(0)->chunks())
        arrays.push_back(inner_array(chunk, steps));
      return make_values(std::move(arrays));
    });
  }

 private:
  Footer footer_;
  std::vector<TableColumn> columns_;
  std::vector<std::vector<int>> leaves_;  ///< Of each column, those of the file.
  std::vector<std::size_t> depths_;       ///< Structs above each column.
  std::vector<std::int64_t> num_rows_;
};

}  // namespace

std::unique_ptr<const TableFile> open_parquet(int descriptor) {
  return translated("opened as Parquet", [&] { return std::make_unique<ParquetFile>(descriptor); });
}

}  // namespace trireme::data
