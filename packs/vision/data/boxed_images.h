#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "packs/vision/data/image_size.h"
#include "trireme/data.h"

namespace trireme::vision {

/// A box by two corners and the number of its class, from 1 on; 0 is background. In pixels, or as
/// parts of an image's sides: its owner says.
struct LabelledBox {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  std::int64_t label = 0;

  bool operator==(const LabelledBox&) const = default;
};

/// An image in a file or a record, with what is seen on it.
struct BoxedImage {
  std::int64_t id = 0;
  std::string name;        ///< Of the file, in the folder.
  std::int64_t bytes = 0;  ///< Of the file; 0 of a record.
  std::int64_t record = -1;
  std::string field;  ///< Of the record that has the image.
  ImageSize size;
  std::vector<LabelledBox> boxes;  ///< In pixels, as the annotations are ordered; may be empty.
};

/// Images with boxes as a COCO file lists them. Immutable but for who holds it.
struct BoxedImages {
  std::filesystem::path folder, annotations;
  std::shared_ptr<const data::RecordSource> records;  ///< Null: files of `folder`.
  std::vector<BoxedImage> images;                     ///< In order of their ids.
  std::vector<std::int64_t> category_ids;  ///< Ascending: label k is category_ids[k - 1].
  std::vector<std::string> category_names;

  /// The image's bytes, and where they lie, in words. Errors of `read`: kIo, those of the records.
  std::vector<std::byte> read(const BoxedImage& image) const;
  std::string place_of(const BoxedImage& image) const;

  /// Boxes of the image that has most; 0 where none has any.
  std::int64_t most_boxes() const;

  /// Tells these from others: images, sizes, boxes and categories, not folders or content of files.
  std::string identity() const;
};

/// Opens the images of a folder and the boxes of a COCO instances file.
///
/// Crowds (`iscrowd` 1: many objects in one box) are left out; images without boxes are kept. A box that
/// leaves its image by a pixel at most, as rounded ones do, is cut off there.
///
/// Errors   kCorruptData, naming the file, the annotation or image by its id and the field: where the file
///          is no such file; an image or annotation appears twice; an annotation's image or category is
///          unknown; a box has a side that is not above 0, or lies outside of its image. kIo where
///          an image's file is missing.
/// Cost     the file; asks for the size of each image's file, reads none.
BoxedImages open_boxed_images(const std::filesystem::path& folder,
                              const std::filesystem::path& annotations);

/// The same of images in records, as of tar shards or MDS (data::open_records): each has the image as `jpg`, `jpeg` or `png`, and as
/// `id` the image's id in the COCO file, in decimal digits or as an i64. Records may lie in any order.
///
/// Errors   also kCorruptData, naming the record, where it has no image, no id, or one that the file does not list or that came
///          before; and where an image of the file is in no record.
/// Cost     reads the id of each record.
BoxedImages open_boxed_images(std::shared_ptr<const data::RecordSource> records,
                              const std::filesystem::path& annotations);

/// Of a folder of files, or of records where `paths` are several, a file, or a folder that open_records knows by its index.json.
BoxedImages open_boxed_images(const std::vector<std::filesystem::path>& paths,
                              const std::filesystem::path& annotations);

}  // namespace trireme::vision
