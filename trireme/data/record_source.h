#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

/// Files by record: what belongs together has one index, each part a name, as `jpg` and `cls`. What the
/// bytes mean is a source's business (data.h). Thread-safe: every method is const.
class RecordSource {
 public:
  virtual ~RecordSource() = default;

  virtual std::int64_t num_records() const = 0;

  /// Names of the fields of a record, in the order in which they were found: endings of file names
  /// in small letters, without the dot.
  ///
  /// Errors   kInvalidArgument for an index out of range, as of all methods below.
  virtual std::vector<std::string> fields(std::int64_t index) const = 0;

  /// The bytes of a field: a pure function of the arguments, as long as nobody changes the files.
  ///
  /// Errors   kInvalidArgument where the record has no such field; kIo and kCorruptData, naming
  ///          file and record, where the file is gone or not what it was. Blocking.
  virtual std::vector<std::byte> read(std::int64_t index, std::string_view field) const = 0;

  /// A record in words, for messages: its file, and where it lies there.
  virtual std::string name(std::int64_t index) const = 0;

  /// Tells these records from others, for a run that resumes: a hash of names and sizes, not of
  /// folders that lie above, times or content.
  virtual std::string identity() const = 0;
};

}  // namespace trireme::data
