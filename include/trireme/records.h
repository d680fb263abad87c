#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

/// Files by record: what belongs together has one index, each part a name, as `jpg` and `cls`. What the
/// bytes mean is a source's business (trireme/data.h). Thread-safe: every method is const.
class RecordSource {
 public:
  virtual ~RecordSource() = default;

  virtual std::int64_t num_records() const = 0;

  /// Names of the fields of a record, as its form has them.
  ///
  /// Errors   kInvalidArgument for an index out of range, as of all methods below; those of `read`.
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

/// Of files that end in `.gz`, `.zst` or `.zstd`. Changes no results.
struct UnpackOptions {
  std::filesystem::path
      folder;  ///< For the unpacked bytes; none: the system's for temporary files.
  std::int64_t max_bytes = std::int64_t{16} << 30;  ///< Of all files of a data set, unpacked.
};

/// How records lie in files, and what their fields are.
enum class RecordForm : std::uint8_t {
  kByName,     ///< As the paths say.
  kFolder,     ///< A folder with a subfolder for each class: a file by its ending, and `cls`.
  kTar,        ///< WebDataset: files of one name, by their endings.
  kJsonLines,  ///< Keys of an object: a text's bytes, JSON of other values.
  kCsv,        ///< Columns.
  kTfrecord,   ///< Features of a tf.train.Example: bytes; numbers as i64 and f32, little-endian.
  kMds,        ///< Columns of MosaicML's streaming: bytes of their encoding.
};

/// Changes results, but for `unpack`.
struct RecordFileOptions {
  RecordForm form = RecordForm::kByName;

  /// Of kFolder: which files, by their endings in small letters, and classes by number; none: the subfolders, sorted.
  std::vector<std::string> suffixes = {".jpg", ".jpeg", ".png"};
  std::vector<std::string> classes;

  /// Of kCsv: names of the columns, none: each file's first row; what separates values, none: a tab in `.tsv`, else a comma;
  /// whether they may stand in quotes.
  std::vector<std::string> columns;
  std::optional<char> separator;
  bool has_quotes = true;

  UnpackOptions unpack;
};

/// Opens files of records, or a folder of them, sorted by name, by what they are called:
///
///     x.tar | x.jsonl, x.ndjson | x.csv, x.tsv | x.tfrecord, x.tfrecords      all but tar also .gz, .zst, .zstd
///     a folder with index.json (MDS); one of files of one form; one with a subfolder for each class
///
/// Records are those of the first file, then of the next one. Headers or whole files are read, once.
///
/// Errors   kInvalidArgument, naming the forms that are known, for other paths, or several forms; those of the form
///          (trireme/data/*_records.h): kCorruptData, naming file and record, for one that is damaged or cut off; kIo.
std::shared_ptr<const RecordSource> open_records(const std::vector<std::filesystem::path>& paths,
                                                 const RecordFileOptions& options = {});

}  // namespace trireme::data
