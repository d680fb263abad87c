#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trireme/data.h"

namespace trireme::data {

struct FolderRecordOptions {
  std::vector<std::string> suffixes = {".jpg", ".jpeg",
                                       ".png"};  ///< In small letters; any case counts.
  std::vector<std::string> classes;  ///< Folders by class; none: those that there are, sorted.
};

/// A folder with a subfolder for each class, as ImageNet is laid out: each file in or below it, with
/// one of the suffixes, is a record. Other files are left out, and so is all that is hidden.
///
/// Records are ordered by class, then by the bytes of their paths. A record has the file's bytes under
/// its ending, and `cls`, the number of its class in decimal digits.
///
/// Cost     a path of memory a file. Reading opens and closes the file.
/// Threads  immutable.
class FolderRecords : public RecordSource {
 public:
  /// Errors   kInvalidArgument where the folder is none, or has no class, where a class has no record,
  ///          or is not among those named; kIo for what cannot be listed. A class that is named may have
  ///          no folder.
  explicit FolderRecords(std::filesystem::path folder, FolderRecordOptions options = {});

  std::int64_t num_records() const override { return static_cast<std::int64_t>(records_.size()); }
  std::vector<std::string> fields(std::int64_t index) const override;
  std::vector<std::byte> read(std::int64_t index, std::string_view field) const override;
  std::string name(std::int64_t index) const override;
  std::string identity() const override;

  const std::vector<std::string>& classes() const { return classes_; }

 private:
  struct Record {
    std::string path;  ///< Below the folder.
    std::int64_t bytes = 0;
    std::int32_t label = 0;
  };

  void add_class(const std::string& name, std::int32_t label,
                 const std::vector<std::string>& suffixes);
  const Record& record(std::int64_t index) const;

  std::filesystem::path folder_;
  std::vector<std::string> classes_;
  std::vector<Record> records_;
};

}  // namespace trireme::data
