#include "trireme/data/arrow/columns.h"

#include <arrow/array/array_nested.h>
#include <arrow/array/validate.h>
#include <arrow/extension_type.h>
#include <arrow/type_traits.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "trireme/data/arrow/status.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

using Bytes = std::vector<std::byte>;

/// What an extension keeps its values in.
const arrow::DataType& storage_of(const arrow::DataType& type) {
  if (type.id() != arrow::Type::EXTENSION) return type;
  return storage_of(*static_cast<const arrow::ExtensionType&>(type).storage_type());
}

std::shared_ptr<arrow::Array> storage_of(std::shared_ptr<arrow::Array> array) {
  if (array->type_id() != arrow::Type::EXTENSION) return array;
  return storage_of(static_cast<const arrow::ExtensionArray&>(*array).storage());
}

/// Numbers, times, bools.
bool is_number(arrow::Type::type id) {
  return arrow::is_integer(id) || arrow::is_floating(id) || id == arrow::Type::BOOL ||
         id == arrow::Type::TIMESTAMP || arrow::is_date(id) || arrow::is_time(id) ||
         id == arrow::Type::DURATION;
}

bool is_text(arrow::Type::type id) {
  return arrow::is_base_binary_like(id) || arrow::is_binary_view_like(id) ||
         id == arrow::Type::FIXED_SIZE_BINARY;
}

/// Lists in lists would lose where one ends, unless all are as long.
bool is_list_of_numbers(const arrow::DataType& type, bool may_vary) {
  const auto id = type.id();
  const bool varies = id == arrow::Type::LIST || id == arrow::Type::LARGE_LIST;
  if (id != arrow::Type::FIXED_SIZE_LIST && !(varies && may_vary)) return false;
  const arrow::DataType& value = storage_of(*type.field(0)->type());
  return is_number(value.id()) || is_list_of_numbers(value, false);
}

bool is_readable(const arrow::DataType& extended) {
  const arrow::DataType& type = storage_of(extended);
  if (type.id() == arrow::Type::DICTIONARY) {
    const arrow::DataType& value =
        storage_of(*static_cast<const arrow::DictionaryType&>(type).value_type());
    return is_number(value.id()) || is_text(value.id());
  }
  return is_number(type.id()) || is_text(type.id()) || is_list_of_numbers(type, true);
}

void add_columns(const arrow::Field& field, const ArrowColumn& above,
                 std::vector<ArrowColumn>& columns) {
  ArrowColumn here = above;
  here.column.name += field.name();
  const arrow::DataType& type = storage_of(*field.type());
  if (type.id() != arrow::Type::STRUCT || type.num_fields() == 0) {
    here.column.type = field.type()->ToString();
    here.column.is_read = is_readable(*field.type());
    columns.push_back(std::move(here));
    return;
  }
  here.column.name += ".";
  for (int child = 0; child < type.num_fields(); ++child) {
    ArrowColumn below = here;
    below.steps.push_back(child);
    add_columns(*type.field(child), below, columns);
  }
}

[[noreturn]] void refuse_null(const char* where) {
  throw Error(ErrorKind::kCorruptData, std::string(where) + " null");
}

void append_bytes(const void* data, std::int64_t count, Bytes& bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + count);
}

void append_text(std::string_view text, Bytes& bytes) {
  append_bytes(text.data(), std::ssize(text), bytes);
}

/// Numbers `begin` to `end` of an array, or what lists of a fixed length hold there.
void append_numbers(const arrow::Array& extended, std::int64_t begin, std::int64_t end,
                    Bytes& bytes) {
  if (extended.type_id() == arrow::Type::EXTENSION) {
    return append_numbers(*static_cast<const arrow::ExtensionArray&>(extended).storage(), begin,
                          end, bytes);
  }
  const arrow::Array& array = extended;
  for (std::int64_t i = begin; array.null_count() > 0 && i < end; ++i) {
    if (array.IsNull(i)) refuse_null("holds a");
  }
  if (array.type_id() == arrow::Type::FIXED_SIZE_LIST) {
    const auto& lists = static_cast<const arrow::FixedSizeListArray&>(array);
    return append_numbers(*lists.values(), lists.value_offset(begin), lists.value_offset(end),
                          bytes);
  }
  if (array.type_id() == arrow::Type::BOOL) {
    const auto& bools = static_cast<const arrow::BooleanArray&>(array);
    for (std::int64_t i = begin; i < end; ++i) bytes.push_back(std::byte{bools.Value(i)});
    return;
  }
  const std::int64_t width = array.type()->byte_width();
  if (begin == end) return;  // there may be no buffer
  const auto* data = array.data()->GetValues<std::uint8_t>(1, 0);
  append_bytes(data + (array.offset() + begin) * width, (end - begin) * width, bytes);
}

template <typename List>
void append_list(const arrow::Array& array, std::int64_t row, Bytes& bytes) {
  const auto& lists = static_cast<const List&>(array);
  append_numbers(*lists.values(), lists.value_offset(row), lists.value_offset(row + 1), bytes);
}

template <typename Binary>
void append_binary(const arrow::Array& array, std::int64_t row, Bytes& bytes) {
  append_text(static_cast<const Binary&>(array).GetView(row), bytes);
}

void append_value(const arrow::Array& array, std::int64_t row, Bytes& bytes) {
  if (array.IsNull(row)) refuse_null("is");
  switch (array.type_id()) {
    case arrow::Type::EXTENSION:
      return append_value(*static_cast<const arrow::ExtensionArray&>(array).storage(), row, bytes);
    case arrow::Type::DICTIONARY: {
      const auto& entries = static_cast<const arrow::DictionaryArray&>(array);
      return append_value(*entries.dictionary(), entries.GetValueIndex(row), bytes);
    }
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return append_binary<arrow::BinaryArray>(array, row, bytes);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return append_binary<arrow::LargeBinaryArray>(array, row, bytes);
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return append_binary<arrow::BinaryViewArray>(array, row, bytes);
    case arrow::Type::FIXED_SIZE_BINARY:
      return append_binary<arrow::FixedSizeBinaryArray>(array, row, bytes);
    case arrow::Type::LIST:
      return append_list<arrow::ListArray>(array, row, bytes);
    case arrow::Type::LARGE_LIST:
      return append_list<arrow::LargeListArray>(array, row, bytes);
    default:
      return append_numbers(array, row, row + 1, bytes);
  }
}

/// Of all buffers outside `mapped`.
std::int64_t held_bytes(const arrow::ArrayData& data, std::span<const std::byte> mapped) {
  std::int64_t bytes = sizeof(arrow::ArrayData);
  for (const auto& buffer : data.buffers) {
    if (!buffer) continue;
    const auto* begin = reinterpret_cast<const std::byte*>(buffer->address());
    const bool is_mapped = begin >= mapped.data() && begin < mapped.data() + mapped.size();
    if (!is_mapped) bytes += buffer->capacity();
  }
  for (const auto& child : data.child_data) bytes += held_bytes(*child, mapped);
  if (data.dictionary) bytes += held_bytes(*data.dictionary, mapped);
  return bytes;
}

class ArrowValues : public ColumnValues {
 public:
  ArrowValues(arrow::ArrayVector arrays, std::span<const std::byte> mapped)
      : arrays_(std::move(arrays)) {
    for (const auto& array : arrays_) {
      num_rows_ += array->length();
      num_bytes_ += held_bytes(*array->data(), mapped);
    }
  }

  std::int64_t num_rows() const override { return num_rows_; }
  std::int64_t num_bytes() const override { return num_bytes_; }

  std::vector<std::byte> read(std::int64_t row) const override {
    Bytes bytes;
    for (const auto& array : arrays_) {  // nearly always one
      if (row < array->length()) {
        append_value(*array, row, bytes);
        break;
      }
      row -= array->length();
    }
    return bytes;
  }

 private:
  arrow::ArrayVector arrays_;
  std::int64_t num_rows_ = 0, num_bytes_ = 0;
};

}  // namespace

std::vector<ArrowColumn> columns_of(const arrow::Schema& schema) {
  std::vector<ArrowColumn> columns;
  for (int field = 0; field < schema.num_fields(); ++field) {
    add_columns(*schema.field(field), {.field = field}, columns);
  }
  return columns;
}

std::shared_ptr<arrow::Array> inner_array(std::shared_ptr<arrow::Array> array,
                                          std::span<const int> steps) {
  for (const int step : steps) {
    check_status(array->Validate(),
                 "read");  // lengths below zero end the process where structs are taken apart
    array = storage_of(std::move(array));
    if (array->type_id() != arrow::Type::STRUCT || step >= array->num_fields()) {
      throw Error(ErrorKind::kCorruptData, "is " + array->type()->ToString() + " in the file");
    }
    array = value_of(static_cast<const arrow::StructArray&>(*array).GetFlattenedField(step),
                     "flattened");
  }
  return array;
}

std::unique_ptr<const ColumnValues> make_values(arrow::ArrayVector arrays,
                                                std::span<const std::byte> mapped) {
  for (const auto& array : arrays) check_status(array->ValidateFull(), "read");
  return std::make_unique<ArrowValues>(std::move(arrays), mapped);
}

}  // namespace trireme::data
