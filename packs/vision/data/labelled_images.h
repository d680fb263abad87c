#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trireme/records.h"

namespace trireme::vision {

/// Images as they lie in files, each of a class. Immutable but for who holds it.
struct LabelledImages {
  std::shared_ptr<const data::RecordSource> records;
  std::vector<std::string> image_fields;  ///< Of each record: `jpg`, `jpeg` or `png`.
  std::vector<std::int32_t> labels;       ///< Of each record, the number of its class.
  std::vector<std::string> classes;       ///< Names; of shards their numbers.
};

/// Opens a folder with a subfolder for each class (data/folder_records.h), or tar shards whose records have an
/// image and its class as decimal digits, `cls` (data/tar_records.h). A folder that itself holds files ending in
/// `.tar` stands for these, sorted.
///
/// classes   what the labels number, as of the training's images; none: the folder's subfolders, sorted; of
///           shards as many as the largest label says.
/// Errors    those of FolderRecords and TarRecords; kInvalidArgument where paths are several and one is a
///           folder; kCorruptData, naming the record, where it has no image or no class, or one that is no
///           number of a class.
/// Cost      reads the classes of all records: of shards one read each.
LabelledImages open_images(const std::vector<std::filesystem::path>& paths,
                           std::vector<std::string> classes = {});

}  // namespace trireme::vision
