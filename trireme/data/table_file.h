#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace trireme::data {

/// How a table lies in a file.
enum class TableForm : std::uint8_t {
  kParquet,
  kArrow,  ///< Arrow's IPC, as a file (Feather) or as a stream.
};

/// The values of a column in a group of rows. Immutable.
class ColumnValues {
 public:
  virtual ~ColumnValues() = default;

  virtual std::int64_t num_rows() const = 0;

  /// Memory that these values keep; a file's pages that are mapped are not counted.
  virtual std::int64_t num_bytes() const = 0;

  /// Errors   kCorruptData where the value is null, or holds one.
  virtual std::vector<std::byte> read(std::int64_t row) const = 0;
};

/// A column as records have it: a column in structs has their names in front, `image.bytes`.
struct TableColumn {
  std::string name;
  std::string type;     ///< In Arrow's words: `int64`, `list<item: float>`.
  bool is_read = true;  ///< Else its type has no form here.
  bool operator==(const TableColumn&) const = default;
};

/// What a file says about itself. Thread-safe: every method is const.
class TableFile {
 public:
  virtual ~TableFile() = default;

  virtual const std::vector<TableColumn>& columns() const = 0;

  /// Of each group: a row group of Parquet, a record batch of Arrow.
  virtual const std::vector<std::int64_t>& num_rows() const = 0;

  /// Whether values lie in mapped pages of the file: it may not get shorter meanwhile.
  virtual bool is_mapped() const = 0;

  /// Decodes a column of a group. `descriptor` is the file's, lent for the call.
  ///
  /// Errors   kCorruptData, kInvalidArgument for what the library does not know (a codec), kIo, kResourceExhausted; none
  ///          names the file. Blocking.
  virtual std::unique_ptr<const ColumnValues> read(int descriptor, int group, int column) const = 0;
};

/// What reads tables: a library of its own (trireme/data/arrow), loaded where a first one is met. Thread-safe.
class TableLibrary {
 public:
  virtual ~TableLibrary() = default;

  /// `descriptor` is lent for the call. Errors as of TableFile::read; kCorruptData where it is no such file, or cut off.
  virtual std::unique_ptr<const TableFile> open(TableForm form, int descriptor) const = 0;
};

/// The library's one function, of this name and type; a change of the classes above is another number.
constexpr const char* kTableLibraryFunction = "trireme_table_library_1";
using TableLibraryFunction = const TableLibrary* (*)();

/// Errors   kUnavailable, saying what to install, where the library or Arrow's are not there.
const TableLibrary& load_table_library();

}  // namespace trireme::data
