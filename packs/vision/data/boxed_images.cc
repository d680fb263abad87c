#include "packs/vision/data/boxed_images.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "packs/vision/coco/items.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/base/sha256.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

namespace fs = std::filesystem;
using internal::Item;

constexpr double kRounding = 1;  ///< Pixels by which a box may leave its image.

/// One list of the file, item by item.
class ItemList {
 public:
  ItemList(const Json& file, const std::string& origin, const char* name)
      : label_(origin + " " + name) {
    if (!file.is_object() || !file.contains(name) || !file[name].is_array()) {
      throw Error(ErrorKind::kCorruptData, "'" + origin + "' has no list \"" + name + "\"");
    }
    json_ = &file[name];
  }

  /// visit(item, id), in the file's order; an id that comes twice is refused.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    std::set<std::int64_t> ids;
    for (std::int64_t i = 0; i < std::ssize(*json_); ++i) {
      const Item item((*json_)[static_cast<std::size_t>(i)], label_, i);
      const std::int64_t id = item.integer("id");
      if (!ids.insert(id).second) item.fail("there are two with id " + std::to_string(id));
      visit(item, id);
    }
  }

 private:
  std::string label_;
  const Json* json_ = nullptr;
};

std::string text_of(const Item& item, const char* name) {
  const Json* text = item.find(name);
  if (text == nullptr || !text->is_string()) {
    item.fail(std::string("expected a text as \"") + name + "\"");
  }
  return text->get<std::string>();
}

std::int64_t size_of_file(const fs::path& path) {
  std::error_code problem;
  const auto bytes = fs::file_size(path, problem);
  if (problem) throw_system_error("find image", path, problem);
  return static_cast<std::int64_t>(bytes);
}

class Reading {
 public:
  explicit Reading(BoxedImages& images) : images_(images) {}

  void add_image(const Item& item, std::int64_t id) {
    BoxedImage image{.id = id,
                     .name = text_of(item, "file_name"),
                     .size = {item.integer("height"), item.integer("width")}};
    if (image.size.height < 1 || image.size.width < 1) {
      item.fail("image " + std::to_string(id) + " has no pixels by \"height\" and \"width\"");
    }
    if (!images_.records) image.bytes = size_of_file(images_.folder / image.name);
    images_.images.push_back(std::move(image));
  }

  void sort_images() {
    std::ranges::sort(images_.images, {}, &BoxedImage::id);
    for (BoxedImage& image : images_.images) by_id_[image.id] = &image;
  }

  void add_box(const Item& item, std::int64_t id) const {
    const auto refuse = [&](const std::string& problem) {
      item.fail("annotation " + std::to_string(id) + ": " + problem);
    };
    const std::int64_t image_id = item.integer("image_id");
    const auto image = by_id_.find(image_id);
    if (image == by_id_.end()) refuse("\"image_id\": no image " + std::to_string(image_id));
    const std::int64_t category = item.integer("category_id");
    const auto& ids = images_.category_ids;
    const auto found = std::ranges::lower_bound(ids, category);
    if (found == ids.end() || *found != category) {
      refuse("\"category_id\": no category " + std::to_string(category));
    }
    if (const Json* crowd = item.find("iscrowd"); crowd != nullptr && *crowd == 1) return;
    const std::optional<Box> box = item.box("bbox");
    if (!box) refuse("has no \"bbox\"");
    const std::string problem = problem_of(*box, image->second->size);
    if (!problem.empty()) refuse("\"bbox\" " + problem);
    image->second->boxes.push_back(cut(*box, image->second->size, found - ids.begin() + 1));
  }

 private:
  static std::string problem_of(const Box& box, ImageSize size) {
    const auto [x, y, width, height] = box;
    const std::string text = "[" + std::to_string(x) + ", " + std::to_string(y) + ", " +
                             std::to_string(width) + ", " + std::to_string(height) + "]";
    if (!(width > 0 && height > 0)) return text + ": width and height are above 0";
    const double right = static_cast<double>(size.width), bottom = static_cast<double>(size.height);
    const bool is_inside = x >= -kRounding && y >= -kRounding && x + width <= right + kRounding &&
                           y + height <= bottom + kRounding && x < right && y < bottom &&
                           x + width > 0 && y + height > 0;
    if (is_inside) return "";
    return text + " lies outside of its image of " + to_text(size) + " (height x width)";
  }

  static LabelledBox cut(const Box& box, ImageSize size, std::int64_t label) {
    return {.x1 = std::max(box.x, 0.0),
            .y1 = std::max(box.y, 0.0),
            .x2 = std::min(box.x + box.width, static_cast<double>(size.width)),
            .y2 = std::min(box.y + box.height, static_cast<double>(size.height)),
            .label = label};
  }

  BoxedImages& images_;
  std::map<std::int64_t, BoxedImage*> by_id_;
};

/// Which record each image is in.
class PlacesInRecords {
 public:
  explicit PlacesInRecords(BoxedImages& images) : images_(images), records_(*images.records) {}

  void find() {
    for (std::int64_t i = 0; i < records_.num_records(); ++i) {
      const std::int64_t id = id_of(i);
      const auto image = std::ranges::lower_bound(images_.images, id, {}, &BoxedImage::id);
      if (image == images_.images.end() || image->id != id) {
        refuse(i, "has the id " + std::to_string(id) + ", which is no image's");
      }
      if (image->record >= 0) {
        refuse(i, "has the id " + std::to_string(id) + ", as " + records_.name(image->record));
      }
      image->record = i;
      image->field = image_field(i);
    }
    for (const BoxedImage& image : images_.images) {
      if (image.record >= 0) continue;
      throw Error(ErrorKind::kCorruptData, "image " + std::to_string(image.id) + " of '" +
                                               images_.annotations.string() + "' is in no record");
    }
  }

 private:
  [[noreturn]] void refuse(std::int64_t index, const std::string& problem) const {
    throw Error(ErrorKind::kCorruptData, records_.name(index) + " " + problem);
  }

  std::string image_field(std::int64_t index) const {
    const std::vector<std::string> fields = records_.fields(index);
    for (const char* name : {"jpg", "jpeg", "png"}) {
      if (std::ranges::find(fields, name) != fields.end()) return name;
    }
    refuse(index, "has no image: expected jpg, jpeg or png");
  }

  /// Digits, or eight bytes that are none.
  std::int64_t id_of(std::int64_t index) const {
    const std::vector<std::string> fields = records_.fields(index);
    if (std::ranges::find(fields, "id") == fields.end()) {
      refuse(index, "has no `id`: expected that of its image in the COCO file");
    }
    const std::vector<std::byte> bytes = records_.read(index, "id");
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::int64_t id = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (failure == std::errc() && end == text.data() + text.size()) return id;
    if (bytes.size() != sizeof id) refuse(index, "has an `id` that is neither digits nor an i64");
    std::memcpy(&id, bytes.data(), sizeof id);
    return id;
  }

  BoxedImages& images_;
  const data::RecordSource& records_;
};

/// All of the file but where its images are.
BoxedImages read_annotations(BoxedImages images) {
  const std::string origin = images.annotations.string();
  const Json file = parse_json(read_file(images.annotations), origin);
  std::map<std::int64_t, std::string> categories;
  ItemList(file, origin, "categories").for_each([&](const Item& item, std::int64_t id) {
    categories[id] = text_of(item, "name");
  });
  for (const auto& [id, name] : categories) {
    images.category_ids.push_back(id);
    images.category_names.push_back(name);
  }
  Reading reading(images);
  ItemList(file, origin, "images").for_each([&](const Item& item, std::int64_t id) {
    reading.add_image(item, id);
  });
  if (images.images.empty())
    throw Error(ErrorKind::kCorruptData, "'" + origin + "' lists no image");
  reading.sort_images();
  ItemList(file, origin, "annotations").for_each([&](const Item& item, std::int64_t id) {
    reading.add_box(item, id);
  });
  return images;
}

}  // namespace

std::vector<std::byte> BoxedImages::read(const BoxedImage& image) const {
  return records ? records->read(image.record, image.field) : read_file_bytes(folder / image.name);
}

std::string BoxedImages::place_of(const BoxedImage& image) const {
  if (!records) return "'" + (folder / image.name).string() + "'";
  return records->name(image.record) + ", field '" + image.field + "'";
}

std::int64_t BoxedImages::most_boxes() const {
  std::int64_t most = 0;
  for (const BoxedImage& image : images) most = std::max(most, std::ssize(image.boxes));
  return most;
}

std::string BoxedImages::identity() const {
  Json list = Json::array();
  for (const BoxedImage& image : images) {
    Json boxes = Json::array();
    for (const auto& [x1, y1, x2, y2, label] : image.boxes)
      boxes.push_back({x1, y1, x2, y2, label});
    list.push_back({image.id, image.name, image.bytes, image.size.height, image.size.width, boxes});
  }
  Json json = {{"images", list}, {"categories", category_ids}};
  if (records) json["records"] = records->identity();
  return sha256(compact_text(json));
}

BoxedImages open_boxed_images(const fs::path& folder, const fs::path& annotations) {
  return read_annotations({.folder = folder, .annotations = annotations});
}

BoxedImages open_boxed_images(std::shared_ptr<const data::RecordSource> records,
                              const fs::path& annotations) {
  BoxedImages images =
      read_annotations({.annotations = annotations, .records = std::move(records)});
  PlacesInRecords(images).find();
  return images;
}

BoxedImages open_boxed_images(const std::vector<fs::path>& paths, const fs::path& annotations) {
  std::error_code ignored;
  const bool is_folder = paths.size() == 1 && fs::is_directory(paths[0], ignored) &&
                         !fs::exists(paths[0] / "index.json", ignored);
  if (is_folder) return open_boxed_images(paths[0], annotations);
  return open_boxed_images(data::open_records(paths), annotations);
}

}  // namespace trireme::vision
