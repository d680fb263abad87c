#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trireme/data.h"

namespace trireme::vision {

/// Images as they lie in files, each of a class. Immutable but for who holds it.
struct LabelledImages {
  std::shared_ptr<const data::RecordSource> records;
  std::vector<std::string>
      image_fields;  ///< Of each record: `jpg`, `jpeg` or `png`, or as it was named.
  std::vector<std::int32_t> labels;  ///< Of each record, the number of its class.
  std::vector<std::string> classes;  ///< Names; of files that have none their numbers.
};

/// How a record says its class.
enum class LabelForm : std::uint8_t {
  kText,  ///< A number from 0 on, in decimal digits, or the name of a class.
  kI64,   ///< Eight bytes, little-endian: a number of TFRecord, `int` of MDS, int64 of Parquet.
};

/// All of it changes results.
struct ImageFileOptions {
  data::RecordForm form = data::RecordForm::kByName;
  /// What the labels number, as of the training's images; none: a folder's subfolders, sorted; of other records the
  /// numbers from 0 to the largest label, of which none is missing but perhaps 0.
  std::vector<std::string> classes;
  std::string image_field;  ///< None: the first of `jpg`, `jpeg`, `png` that the record has.
  std::string label_field = "cls";  ///< As `json`, `label`, `image/class/label`.
  std::string label_key;  ///< Of a field that is a JSON object: which of its values is the class.
  LabelForm label_form = LabelForm::kText;
};

/// Names of classes from 0 on, a line each, for `ImageFileOptions::classes`; white space around them aside.
///
/// Errors   kIo; kInvalidArgument, naming the line, where one is empty, or the file is.
std::vector<std::string> read_class_names(const std::filesystem::path& file);

/// Opens images and classes: a folder with a subfolder for each class, tar shards, or any records that
/// `data::open_records` knows.
///
/// Errors    those of open_records; kCorruptData, naming the record, where it has no image or no class, or one that is
///           neither a number nor the name of a class, or that is beyond a number that no record has; kInvalidArgument for a field that a record has not.
/// Cost      reads the classes of all records: of tar shards one read each, of other files whole records.
LabelledImages open_images(const std::vector<std::filesystem::path>& paths,
                           const ImageFileOptions& options = {});

}  // namespace trireme::vision
