#pragma once

#include <arrow/array.h>
#include <arrow/type.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/data/table_file.h"

namespace trireme::data {

/// A column of records in Arrow's schema.
struct ArrowColumn {
  TableColumn column;
  int field = 0;           ///< Of the schema, from 0.
  std::vector<int> steps;  ///< From there through structs: which of the fields of each.
};

/// All columns of a schema that are no structs, in its order.
std::vector<ArrowColumn> columns_of(const arrow::Schema& schema);

/// Of an array of structs, the array that `steps` lead to; its values are null, too, where a struct is.
///
/// Errors   kCorruptData where there are no such structs.
std::shared_ptr<arrow::Array> inner_array(std::shared_ptr<arrow::Array> array,
                                          std::span<const int> steps);

/// The values of arrays that follow each other, once they are checked.
///
/// mapped     where the file lies, whose pages are not counted; none: it is not mapped.
/// Errors     kCorruptData where an array is not what its type says: text that is no UTF-8, places beyond the end.
std::unique_ptr<const ColumnValues> make_values(arrow::ArrayVector arrays,
                                                std::span<const std::byte> mapped = {});

}  // namespace trireme::data
